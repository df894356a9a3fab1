// SPDX-License-Identifier: Apache-2.0
#include "tool/lease_table/lease_text.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tool/text.hpp"

namespace kclxx::tool::lease_table {

namespace {

using nlohmann::ordered_json;
using cells = std::vector<std::string>;

std::string since(std::int64_t arrival, std::int64_t now) {
  const std::int64_t age = std::max<std::int64_t>(0, now - arrival);
  constexpr std::int64_t day = 86'400;
  return age < 3 * day ? to_text(std::chrono::seconds(age)) : std::to_string(age / day) + " days";
}

/// Sequence numbers differ in their last digits.
std::string shortened(const std::string& sequence_number) {
  return sequence_number.size() <= 20 ? sequence_number
                                      : "~" + sequence_number.substr(sequence_number.size() - 14);
}

std::string text_or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::string milliseconds_or_dash(std::optional<std::uint64_t> time) {
  return time ? to_text(std::chrono::milliseconds(*time)) : "-";
}

std::string number_or_dash(std::optional<std::uint64_t> number) {
  return number ? std::to_string(*number) : "-";
}

std::string yes_or_no(std::optional<bool> value) { return !value ? "-" : *value ? "yes" : "no"; }

/// Of a text that is UTF-8.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string aligned(const std::vector<cells>& rows, const std::set<std::string>& numbers) {
  std::string text;
  std::vector<std::size_t> widths(rows.front().size());
  for (const cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const cells& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - width(row[i]), ' ');
      const bool is_number = numbers.contains(rows.front()[i]);
      const bool is_last = i + 1 == row.size();
      text += is_number ? space + row[i] : row[i] + (is_last ? "" : space);
      text += is_last ? "\n" : "  ";
    }
  }
  return text;
}

ordered_json lease_object(const shard_state& one, std::int64_t now) {
  const auto text_or_null = [](const std::string& text) {
    return text.empty() ? ordered_json(nullptr) : ordered_json(text);
  };
  ordered_json checkpoint{{"sequence_number", one.lease.sequence_number},
                          {"sub_sequence_number", one.lease.sub_sequence_number}};
  checkpoint["arrived"] = one.arrival ? ordered_json(*one.arrival) : ordered_json(nullptr);
  checkpoint["age_seconds"] =
      one.arrival ? ordered_json(now - *one.arrival) : ordered_json(nullptr);
  return {{"shard", one.lease.shard},
          {"owner", text_or_null(one.lease.owner)},
          {"checkpoint_owner", text_or_null(one.lease.checkpoint_owner)},
          {"counter", one.lease.counter},
          {"moves", one.is_moving ? ordered_json(*one.is_moving) : ordered_json(nullptr)},
          {"checkpoint", checkpoint},
          {"parents", one.lease.parents},
          {"state", name_of(one.state)},
          {"cause", text_or_null(one.cause)}};
}

}  // namespace

std::string to_table(const picture& all, std::int64_t now) {
  const bool has_backlogs =
      std::any_of(all.shards.begin(), all.shards.end(),
                  [](const shard_state& one) { return one.waiting.records || one.waiting.oldest; });
  cells head{"shard", "owner", "counter", "moves", "checkpoint", "age"};
  if (has_backlogs) head.insert(head.end(), {"lag", "oldest"});
  head.emplace_back("state");
  std::vector<cells> rows{head};
  for (const shard_state& one : all.shards) {
    cells row{printable(one.lease.shard),
              printable(text_or_dash(one.lease.owner)),
              std::to_string(one.lease.counter),
              yes_or_no(one.is_moving),
              printable(shortened(one.lease.sequence_number) + "/" + one.lease.sub_sequence_number),
              one.arrival ? since(*one.arrival, now) : "-"};
    if (has_backlogs) {
      row.push_back(number_or_dash(one.waiting.records));
      row.push_back(milliseconds_or_dash(one.waiting.oldest));
    }
    row.push_back(name_of(one.state) + (one.cause.empty() ? "" : ": " + printable(one.cause)));
    rows.push_back(std::move(row));
  }
  std::string text = all.shards.empty() ? "" : aligned(rows, {"counter", "age", "lag", "oldest"});
  if (all.leader) {
    text += "leader: " + printable(all.leader->owner) + '\n';
  }
  if (!all.client_version.empty()) text += "version: " + printable(all.client_version) + '\n';
  for (const note& one : all.notes) {
    text += (one.is_problem ? "stuck: " : "note: ") + printable(one.text) + '\n';
  }
  return text;
}

std::string to_tsv(const picture& all) {
  std::string text =
      "shard\tsequence_number\tsub_sequence_number\towner\tcounter\tlag\toldest_milliseconds\n";
  for (const shard_state& one : all.shards) {
    const cells fields{one.lease.shard,
                       one.lease.sequence_number,
                       one.lease.sub_sequence_number,
                       text_or_dash(one.lease.owner),
                       std::to_string(one.lease.counter),
                       number_or_dash(one.waiting.records),
                       number_or_dash(one.waiting.oldest)};
    for (const std::string& field : fields) {
      text += printable(field);
      text += &field == &fields.back() ? '\n' : '\t';
    }
  }
  return text;
}

std::string to_json(const picture& all, const std::string& table, std::int64_t now,
                    bool in_one_line) {
  ordered_json leases = ordered_json::array();
  for (const shard_state& one : all.shards) leases.push_back(lease_object(one, now));
  ordered_json notes = ordered_json::array();
  for (const note& one : all.notes) {
    notes.push_back({{"problem", one.is_problem}, {"text", one.text}});
  }
  ordered_json leader = nullptr;
  if (all.leader) {
    leader = {{"owner", all.leader->owner},
              {"moves",
               all.is_leader_moving ? ordered_json(*all.is_leader_moving) : ordered_json(nullptr)}};
  }
  const ordered_json document{
      {"table", table},
      {"scans", all.scans},
      {"observed_seconds", std::chrono::duration<double>(all.observed).count()},
      {"stuck", all.is_stuck()},
      {"leader", leader},
      {"client_version",
       all.client_version.empty() ? ordered_json(nullptr) : ordered_json(all.client_version)},
      {"unreadable_by_kcl_2", all.other_rows},
      {"leases", leases},
      {"notes", notes}};
  return document.dump(in_one_line ? -1 : 2, ' ', true, ordered_json::error_handler_t::replace) +
         '\n';
}

}  // namespace kclxx::tool::lease_table

// SPDX-License-Identifier: Apache-2.0
#include "host/lease_table/observation.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <boost/multiprecision/cpp_int.hpp>
#include <nlohmann/json.hpp>

#include "tool/foreign_json.hpp"
#include "tool/text.hpp"

namespace kclxx::host::lease_table {

using namespace tool;

namespace {

using nlohmann::json;

/// One row, with its place in the scan for messages.
class row {
 public:
  row(const json& item, std::size_t number) : item_(item), number_(number) {
    if (!item.is_object()) throw wrong("it is not an object");
  }

  [[nodiscard]] bool has(const char* name) const { return item_.contains(name); }
  /// Empty: it has no such attribute.
  [[nodiscard]] std::string text(const char* name, const char* type = "S") const {
    const json* const value = find(name, type);
    if (value == nullptr) return {};
    if (!value->is_string()) throw wrong(std::string(name) + " is no text");
    return value->get<std::string>();
  }
  [[nodiscard]] std::uint64_t number(const char* name) const {
    const std::string digits = text(name, "N");
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [parsed, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || parsed != end) {
      throw wrong(std::string(name) + " is not a whole number");
    }
    return value;
  }
  /// Digits of any length, without leading zeros.
  [[nodiscard]] std::string digits(const char* name) const {
    std::string value = text(name);
    if (value.find_first_not_of("0123456789") != std::string::npos) {
      throw wrong(std::string(name) + " is not a whole number");
    }
    return value.empty() ? value
                         : value.erase(0, std::min(value.find_first_not_of('0'), value.size() - 1));
  }
  [[nodiscard]] std::vector<std::string> texts(const char* name) const {
    const json* const value = find(name, "SS");
    std::vector<std::string> all;
    for (std::size_t i = 0; value != nullptr && i < value->size(); ++i) {
      if (!value->is_array() || !value->at(i).is_string()) {
        throw wrong(std::string(name) + " is no set of texts");
      }
      all.push_back(value->at(i).get<std::string>());
    }
    return all;
  }
  [[nodiscard]] bad_scan wrong(const std::string& message) const {
    return bad_scan("Items[" + std::to_string(number_) + "]: " + message);
  }

 private:
  [[nodiscard]] const json* find(const char* name, const char* type) const {
    const auto attribute = item_.find(name);
    if (attribute == item_.end()) return nullptr;
    if (!attribute->is_object() || !attribute->contains(type)) {
      throw wrong(std::string(name) + " has no value of the type " + type);
    }
    return &attribute->at(type);
  }

  const json& item_;
  std::size_t number_;
};

json parse_document(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) throw bad_scan("it is empty");
  try {
    json document = parse_foreign(text);
    if (!document.is_object() || !document.contains("Items") || !document["Items"].is_array()) {
      throw bad_scan("it has no list Items, so it is not what aws dynamodb scan prints");
    }
    for (const char* token : {"NextToken", "LastEvaluatedKey"}) {
      const auto found = document.find(token);
      if (found == document.end() || found->is_null()) continue;
      throw bad_scan(std::string("it is not the whole table: it has a ") + token +
                     "; scan without --max-items and --no-paginate");
    }
    return document;
  } catch (const foreign_json_error& error) {
    throw bad_scan(std::string("it ") + error.what());
  }
}

lease lease_of(const row& source, std::string shard) {
  return {std::move(shard),
          source.text("leaseOwner"),
          source.text("checkpointOwner"),
          source.number("leaseCounter"),
          source.text("checkpoint"),
          source.has("checkpointSubSequenceNumber")
              ? std::to_string(source.number("checkpointSubSequenceNumber"))
              : "0",
          source.texts("parentShardId"),
          source.text("streamName"),
          source.digits("startingHashKey"),
          source.digits("endingHashKey")};
}

/// Rows that are no leases: KCL 3.5 has them in the lease table, 3.0 to 3.4 in another one.
void add_coordination(scan& result, const row& source, const std::string& key) {
  if (key == "Leader")
    result.leader = {source.text("ownerName"), source.text("recordVersionNumber")};
  if (key == "Migration3.0") result.client_version = source.text("cv");
}

std::map<std::string, backlog> backlogs_of(const json& document) {
  std::map<std::string, backlog> all;
  const auto found = document.find("kclxxBacklogs");
  if (found == document.end()) return all;
  const auto number = [](const json& item, const char* name) {
    const auto value = find_foreign_number(item, name, 0);
    return value ? std::optional<std::uint64_t>(*value) : std::nullopt;
  };
  for (const auto& [shard, one] : found->items()) {
    all[shard] = {number(one, "records"), number(one, "oldest")};
  }
  return all;
}

}  // namespace

scan parse_scan(std::string_view text) {
  const json document = parse_document(text);
  scan all;
  try {
    all.backlogs = backlogs_of(document);
    if (const auto* const unleased = find_foreign(document, "kclxxUnleased")) {
      all.unleased = unleased->get<std::vector<std::string>>();
    }
    all.stream = find_foreign_text(document, "stream").value_or("");
  } catch (const foreign_json_error& error) {
    throw bad_scan(error.what());
  } catch (const json::type_error&) {
    throw bad_scan("\"kclxxUnleased\" is no list of texts");
  }
  const json& items = document["Items"];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const row one(items[i], i);
    const std::string key = one.text("leaseKey");
    if (key.empty()) {
      const bool is_statistics = one.has("wid");
      if (!is_statistics && !one.has("key"))
        throw one.wrong("no leaseKey, so it is no lease table");
      throw one.wrong(std::string("no leaseKey: this is the table of the application with -") +
                      (is_statistics ? "WorkerMetricStats" : "CoordinatorState") +
                      ", and its leases are in the one without");
    }
    if (one.has("leaseCounter")) {
      all.leases.push_back(lease_of(one, key));
    } else {
      all.other_rows.push_back(key);
      add_coordination(all, one, key);
    }
  }
  std::sort(all.leases.begin(), all.leases.end(),
            [](const lease& one, const lease& other) { return one.shard < other.shard; });
  std::sort(all.other_rows.begin(), all.other_rows.end());
  return all;
}

void scan::add_coordinator_state(std::string_view text) {
  const json document = parse_document(text);
  const json& items = document["Items"];
  for (std::size_t i = 0; i < items.size(); ++i) {
    const row one(items[i], i);
    add_coordination(*this, one, one.text("key"));
  }
}

namespace {

// A lock is renewed less often than a lease.
constexpr observation::time lock_limit{60'000};

bool has_children(const scan& table, const lease& parent) {
  return std::any_of(table.leases.begin(), table.leases.end(), [&](const lease& one) {
    return std::find(one.parents.begin(), one.parents.end(), parent.shard) != one.parents.end();
  });
}

/// Whether its first record is still to be read: then it waits for its parents.
bool has_not_begun(const lease& one) {
  return one.sequence_number == "TRIM_HORIZON" || one.sequence_number == "LATEST" ||
         one.sequence_number == "AT_TIMESTAMP";
}

const lease* unfinished_parent(const scan& table, const lease& child) {
  const auto found = std::find_if(table.leases.begin(), table.leases.end(), [&](const lease& one) {
    return !one.has_ended() &&
           std::find(child.parents.begin(), child.parents.end(), one.shard) != child.parents.end();
  });
  return found == table.leases.end() || !has_not_begun(child) ? nullptr : &*found;
}

/// Whether a worker assigns the leases. Before that each takes its own, as with KCL 2.
bool needs_leader(const scan& table) {
  return table.client_version.starts_with("CLIENT_VERSION_3X");
}

/// The hash keys that no lease of the stream covers: "A to B". As the KCL does it, by the leases
/// whose shards have not ended; an ended one without children is told of by itself.
std::vector<std::string> holes_in(const scan& table, const std::string& stream) {
  using boost::multiprecision::cpp_int;
  std::vector<std::pair<cpp_int, cpp_int>> all;
  bool has_ranges = false;  // DynamoDB Streams have none: each of their shards has 0 to 1
  for (const lease& one : table.leases) {
    if (one.stream != stream || (one.has_ended() && has_children(table, one))) continue;
    if (one.first_hash_key.empty() || one.last_hash_key.empty()) return {};
    has_ranges = has_ranges || one.first_hash_key != "0" || one.last_hash_key != "1";
    all.emplace_back(one.first_hash_key, one.last_hash_key);
  }
  if (!has_ranges) return {};
  std::sort(all.begin(), all.end());
  const cpp_int end = cpp_int(1) << 128;
  all.emplace_back(end, end);
  std::vector<std::string> holes;
  cpp_int next = 0;  // the first that is not covered so far
  for (const auto& [first, last] : all) {
    if (next < first) holes.push_back(next.str() + " to " + cpp_int(first - 1).str());
    if (next <= last) next = last + 1;
  }
  return holes;
}

}  // namespace

const char* name_of(lease_state state) {
  constexpr std::array names{"ok", "held", "ended", "waits", "handing over", "free", "stuck"};
  return names.at(static_cast<std::size_t>(state));
}

bool picture::is_stuck() const {
  return std::any_of(notes.begin(), notes.end(), [](const note& one) { return one.is_problem; }) ||
         std::any_of(shards.begin(), shards.end(),
                     [](const shard_state& one) { return one.state == lease_state::stuck; });
}

bool picture::is_handing_over() const {
  return std::any_of(shards.begin(), shards.end(),
                     [](const shard_state& one) { return one.state == lease_state::handing_over; });
}

void observation::add(scan next, time instant) {
  std::map<std::string, constancy> before = std::exchange(seen_, {});
  const auto note_value = [&](const std::string& key, std::string value) {
    const auto old = before.find(key);
    if (old == before.end()) {
      seen_[key] = {std::move(value), instant, false};
    } else if (old->second.value == value) {
      seen_[key] = old->second;
    } else {
      seen_[key] = {std::move(value), instant, true};
    }
  };
  for (const lease& one : next.leases) {
    note_value("counter " + one.shard, one.owner + " " + std::to_string(one.counter));
    note_value("owners " + one.shard, one.checkpoint_owner + " " + one.owner);
  }
  std::set<std::string> streams;
  for (const lease& one : next.leases) streams.insert(one.stream);
  for (const std::string& stream : streams) {
    for (const std::string& hole : holes_in(next, stream)) {
      note_value("hole " + (stream.empty() ? hole : hole + " of stream " + stream), "");
    }
  }
  if (next.leader) note_value("leader", next.leader->owner + " " + next.leader->version);
  if (scans_ == 0) first_ = instant;
  last_ = instant;
  ++scans_;
  latest_ = std::move(next);
}

observation::time observation::same_for(const std::string& key) const {
  const auto found = seen_.find(key);
  return found == seen_.end() ? time(0) : last_ - found->second.since;
}

std::optional<bool> observation::is_moving(const std::string& key, time limit) const {
  const auto found = seen_.find(key);
  if (found == seen_.end()) return std::nullopt;
  if (last_ - found->second.since >= limit) return false;
  if (found->second.has_changed) return true;
  return std::nullopt;
}

/// A leader that has leases shows sooner by them whether it lives.
std::optional<bool> observation::is_leader_moving() const {
  std::optional<bool> moving = is_moving("leader", lock_limit);
  if (moving || !latest_.leader) return moving;
  for (const lease& one : latest_.leases) {
    if (one.owner != latest_.leader->owner || one.has_ended()) continue;
    const auto lives = is_moving("counter " + one.shard, limit_);
    if (lives && *lives) return true;
    if (lives) moving = false;
  }
  return moving;
}

bool observation::lacks_leader() const {
  return needs_leader(latest_) && (!latest_.leader || is_leader_moving() == false);
}

std::string observation::when_to_start() const {
  return latest_.other_rows.empty() || needs_leader(latest_)
             ? "if none runs, start one"
             : "if none of KCL 3 runs, start one; KCL 2 cannot take it, see below";
}

std::string observation::why_free() const {
  if (lacks_leader()) return "no worker has it, and there is no leader to give it to one";
  const std::string who = needs_leader(latest_)
                              ? "the leader " + latest_.leader->owner + " has yet to assign it; "
                              : "";
  return "no worker has it: " + who + when_to_start();
}

std::string observation::why_not_renewed(const lease& one) const {
  return one.owner + " has not renewed it for " + to_text(same_for("counter " + one.shard)) +
         ": it has ended, or hangs" +
         (lacks_leader() ? ", and there is no leader to give it to another"
                         : ". Others take it after failoverTimeMillis; " + when_to_start());
}

shard_state observation::look_at(const lease& one) const {
  shard_state found{one,
                    lease_state::ok,
                    {},
                    is_moving("counter " + one.shard, limit_),
                    arrival_of(one.sequence_number),
                    {}};
  const auto backlog = latest_.backlogs.find(one.shard);
  if (backlog != latest_.backlogs.end()) found.waiting = backlog->second;
  const auto is = [&](lease_state state, std::string cause) {
    found.state = state;
    found.cause = std::move(cause);
    return found;
  };
  if (one.has_ended()) {
    found.is_moving.reset();
    if (has_children(latest_, one)) return is(lease_state::ended, {});
    return is(
        lease_state::stuck,
        "it has ended, and none of its children has a lease, and no worker makes one: let it be "
        "read again");
  }
  if (!one.checkpoint_owner.empty()) {
    const time lasts = same_for("owners " + one.shard);
    const std::string both = one.checkpoint_owner + " has to hand it over to " + one.owner;
    if (lasts < hand_over_limit) {
      return is(lease_state::handing_over, both + ", which takes 30 s at most");
    }
    return is(lease_state::stuck,
              both + ", and has not for " + to_text(lasts) + ": restart " + one.checkpoint_owner);
  }
  const lease* const parent = unfinished_parent(latest_, one);
  if (one.owner.empty()) {
    found.is_moving.reset();
    const bool has_waited = same_for("owners " + one.shard) >= limit_;
    if (has_waited) return is(lease_state::stuck, why_free());
    if (parent == nullptr) return is(lease_state::free, why_free());
  } else if (found.is_moving == false) {
    return is(lease_state::stuck, why_not_renewed(one));
  }
  if (parent != nullptr) return is(lease_state::waits, "until " + parent->shard + " has ended");
  return is(found.is_moving ? lease_state::ok : lease_state::held, {});
}

void observation::look_at_leader(picture& all) const {
  if (!needs_leader(latest_)) return;
  const std::string what =
      ": no lease is assigned until another worker is the leader, two minutes "
      "after it has begun to wait for the lock, or one of the same workerId "
      "is started";
  if (!latest_.leader) {
    all.notes.push_back({true,
                         "no worker is the leader: no lease is assigned; if no worker runs, "
                         "start one"});
  } else if (all.is_leader_moving == false) {
    all.notes.push_back({true, "the leader " + latest_.leader->owner + " has ended" + what});
  }
}

// While a worker makes the leases of a new table, some are not there yet.
void observation::look_at_shards_without_lease(picture& all) const {
  const std::string hole = "hole ";
  for (auto at = seen_.lower_bound(hole); at != seen_.end() && at->first.starts_with(hole); ++at) {
    if (scans_ > 1 && at->second.since == last_) continue;
    all.notes.push_back({true, "no lease covers hash keys " + at->first.substr(hole.size()) +
                                   ": no worker reads the shard. The leader makes its lease again "
                                   "within 5 min, and it begins at initialPositionInStream"});
  }
  for (const std::string& shard : latest_.unleased) {
    all.notes.push_back({true, "the shard " + shard + " has no lease: no worker reads it"});
  }
}

picture observation::look() const {
  picture all;
  all.other_rows = latest_.other_rows;
  all.leader = latest_.leader;
  all.client_version = latest_.client_version;
  all.is_leader_moving = is_leader_moving();
  all.scans = scans_;
  all.observed = last_ - first_;
  for (const lease& one : latest_.leases) all.shards.push_back(look_at(one));
  if (all.shards.empty()) {
    all.notes.push_back({true, "the table has no lease: no worker has begun; see its log"});
  }
  look_at_shards_without_lease(all);
  look_at_leader(all);
  if (scans_ == 1) {
    all.notes.push_back({false, "whether counters move is not known from one scan"});
  }
  return all;
}

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

}  // namespace kclxx::host::lease_table

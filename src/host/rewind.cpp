// SPDX-License-Identifier: Apache-2.0
#include "host/rewind.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <unistd.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/arrival_time.hpp"
#include "host/aws_program.hpp"
#include "host/lease_table/observation.hpp"
#include "host/lease_table/stream_position.hpp"
#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "tool/files.hpp"
#include "tool/foreign_json.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

using lease_table::instant;
using lease_table::lease;
using nlohmann::json;
using nlohmann::ordered_json;

struct table_scan {
  std::map<std::string, lease> leases;
  std::map<std::string, json> rows;  ///< as DynamoDB has them, of the leases
};

table_scan scan_table(const rewind_options& chosen) {
  const auto text = scan_dynamodb(chosen.table, chosen.for_dynamodb);
  if (!text) cannot_set_up("there is no table " + chosen.table + " where aws looks");
  try {
    table_scan result;
    for (lease& row : lease_table::parse_scan(*text).leases) {
      result.leases.emplace(row.shard, std::move(row));
    }
    const json document = parse_foreign(*text);
    for (const json& item : document.at("Items")) {
      const std::string key = item.at("leaseKey").at("S").get<std::string>();
      if (result.leases.contains(key)) result.rows[key] = item;
    }
    return result;
  } catch (const lease_table::bad_scan& error) {
    cannot_set_up("what aws prints of " + chosen.table + ": " + error.what());
  }
}

std::string iso_text(instant time) {
  return detail::to_iso_8601(std::chrono::sys_time<instant>(time));
}

std::string position_of(const lease& row) {
  return row.sequence_number + "/" + row.sub_sequence_number;
}

struct lease_move {
  std::string shard{};
  std::string target{};  ///< empty: it stays
  std::string remark{};
  bool is_problem = false;  ///< records that are asked for do not come
  std::string sub_sequence_number = "0";
};

/// Decides what becomes of each row.
class rewind_plan {
 public:
  rewind_plan(const rewind_options& chosen, const table_scan& table)
      : chosen_(chosen), table_(table) {
    if (chosen.target != "TRIM_HORIZON" && chosen.target != "LATEST") {
      time_ = lease_table::parse_instant(chosen.target);
    }
  }

  [[nodiscard]] std::vector<lease_move> make() const {
    std::set<std::string> in_stream;
    for (const auto& shard : list_shards(chosen_.stream, chosen_.for_kinesis))
      in_stream.insert(shard.id);
    std::vector<lease_move> moves;
    for (const auto& [shard, row] : table_.leases) {
      if (chosen_.has_chosen(shard)) moves.push_back(move_of(row, in_stream.contains(shard)));
    }
    for (const std::string& shard : in_stream) {
      if (chosen_.shards.empty() && !table_.leases.contains(shard)) {
        add_shard_without_row(moves, shard);
      }
    }
    return moves;
  }

 private:
  [[nodiscard]] lease_table::stream_position find(const std::string& shard) const {
    return lease_table::find_position(
        {[&](std::optional<instant> time) {
           std::vector<std::string> arguments{
               "get-shard-iterator", "--stream-name", chosen_.stream,
               "--shard-id",         shard,           "--shard-iterator-type"};
           if (time) {
             // aws sends whole seconds.
             const auto second = std::chrono::floor<std::chrono::seconds>(*time);
             arguments.insert(arguments.end(), {"AT_TIMESTAMP", "--timestamp", iso_text(second)});
           } else {
             arguments.emplace_back("TRIM_HORIZON");
           }
           return lease_table::parse_iterator(ask_kinesis(arguments, chosen_.for_kinesis));
         },
         [&](const std::string& iterator, int max_records) {
           return lease_table::parse_records(
               ask_kinesis({"get-records", "--shard-iterator", iterator, "--limit",
                            std::to_string(max_records)},
                           chosen_.for_kinesis));
         }},
        *time_);
  }

  [[nodiscard]] lease_move move_of(const lease& row, bool is_in_stream) const {
    if (!row.stream.empty()) cannot_set_up("this table is of several streams");
    const auto stays = [&](std::string why) { return lease_move{row.shard, "", std::move(why)}; };
    if (!is_in_stream) return stays("the stream no longer has this shard");
    if (!time_) {
      if (row.sequence_number == chosen_.target) return stays("it is there");
      if (chosen_.target == "LATEST") {
        if (row.has_ended()) return stays("it has ended");
        return {row.shard, "LATEST", "skips what comes before the start"};
      }
      return {row.shard, "TRIM_HORIZON", "again: all that is kept"};
    }
    if (row.sequence_number == "TRIM_HORIZON") return stays("it is at the oldest record");
    const auto position = find(row.shard);
    if (row.has_ended() && !position.first_arrival) {
      return stays("it ended before that time");
    }
    // What a word such as LATEST means depends on when the worker starts, so it is not compared.
    if (lease_table::is_before(position.checkpoint, row.sequence_number) == false) {
      return stays("it has yet to read the records of that time");
    }
    return {row.shard, position.checkpoint, how_much(row, position)};
  }

  static std::string how_much(const lease& row, const lease_table::stream_position& position) {
    if (!position.first_arrival) return "again: nothing, it has no record since then";
    const std::string begin = "again: from " + iso_text(*position.first_arrival);
    const auto old_arrival = lease_table::arrival_of(row.sequence_number);
    if (!old_arrival) return begin;
    const auto span =
        std::max(instant(std::chrono::seconds(*old_arrival)) - *position.first_arrival, instant(0));
    return begin + ", " + to_text(std::chrono::floor<std::chrono::seconds>(span));
  }

  void add_shard_without_row(std::vector<lease_move>& moves, const std::string& shard) const {
    if (chosen_.target == "LATEST") return;
    if (time_ && !find(shard).first_arrival) return;
    moves.push_back({shard, "",
                     "it has no row, so its records do not come again; with --shard the shards "
                     "that are named are moved without it",
                     true});
  }

  const rewind_options& chosen_;
  const table_scan& table_;
  std::optional<instant> time_;
};

/// The moves that put back the rows of a file. Errors: command_error, std::system_error.
std::vector<lease_move> read_moves(const rewind_options& chosen, const table_scan& table) {
  try {
    const json document = parse_foreign(text_of_file(chosen.file));
    if (!document.is_object() || foreign_text(document, "table") != chosen.table) {
      cannot_set_up(chosen.file + " is of another table");
    }
    std::vector<lease_move> moves;
    for (const json& entry : document.at("rows")) {
      const json& row = entry.at("row");
      const std::string shard = row.at("leaseKey").at("S").get<std::string>();
      if (!chosen.has_chosen(shard)) continue;
      const std::string written = foreign_text(entry, "written");
      const auto current = table.leases.find(shard);
      if (current == table.leases.end()) {
        moves.push_back({shard, "", "its row is gone", true});
      } else if (current->second.sequence_number == row.at("checkpoint").at("S")) {
        moves.push_back({shard, "", "it is there"});
      } else if (current->second.sequence_number != written) {
        moves.push_back({shard, "", "it is no longer where the move has put it", true});
      } else {
        const json sub = row.value("checkpointSubSequenceNumber", json{{"N", "0"}});
        moves.push_back({shard, row.at("checkpoint").at("S").get<std::string>(), "restored", false,
                         sub.at("N").get<std::string>()});
      }
    }
    return moves;
  } catch (const foreign_json_error& error) {
    cannot_set_up(chosen.file + " " + error.what());
  } catch (const json::exception&) {
    cannot_set_up(chosen.file + " is no file that kclxx leases --rewind has left");
  }
}

void print_moves(const std::vector<lease_move>& moves, const table_scan& table) {
  for (const lease_move& entry : moves) {
    const auto row = table.leases.find(entry.shard);
    const std::string old_position = row == table.leases.end() ? "-" : position_of(row->second);
    std::cout << printable(entry.shard + "  " + old_position +
                           (entry.target.empty() ? "  stays: " : " -> " + entry.target + "  ") +
                           entry.remark)
              << '\n';
  }
}

/// Refuses when the two scans show a worker that renews a lease which is to be moved. Errors:
/// command_error.
void refuse_if_renewed(const std::vector<lease_move>& moves, const table_scan& before,
                       const table_scan& after) {
  for (const lease_move& entry : moves) {
    if (entry.target.empty()) continue;
    const auto old_row = before.leases.find(entry.shard);
    const auto row = after.leases.find(entry.shard);
    if (row == after.leases.end()) cannot_set_up("the row of " + entry.shard + " is gone");
    if (old_row == before.leases.end() || old_row->second.counter != row->second.counter ||
        old_row->second.owner != row->second.owner ||
        position_of(old_row->second) != position_of(row->second)) {
      throw command_error(command_status::finding,
                          (row->second.owner.empty() ? "a worker" : row->second.owner) +
                              " renews the lease of " + entry.shard +
                              ": stop all workers first. Nothing was written");
    }
  }
}

/// Moves the row and frees its lease as the KCL does: without an owner and with a new counter. A
/// worker that was only suspended cannot renew it then. False: the row is not as it was read.
bool write_row(const rewind_options& chosen, const lease& row, const json& item,
               const lease_move& entry) {
  std::string condition = "leaseCounter = :counter AND checkpoint = :old";
  json values{{":new", {{"S", entry.target}}},
              {":sub", {{"N", entry.sub_sequence_number}}},
              {":old", {{"S", row.sequence_number}}},
              {":counter", {{"N", std::to_string(row.counter)}}},
              {":next", {{"N", std::to_string(row.counter + 1)}}}};
  const auto require_unchanged = [&](const char* attribute, const char* value_name) {
    if (item.contains(attribute)) {
      condition += std::string(" AND ") + attribute + " = " + value_name;
      values[value_name] = item.at(attribute);
    } else {
      condition += std::string(" AND attribute_not_exists(") + attribute + ")";
    }
  };
  require_unchanged("leaseOwner", ":owner");
  require_unchanged("checkpointSubSequenceNumber", ":oldsub");
  const auto answer = output_unless(
      "ConditionalCheckFailedException",
      run_aws({"dynamodb", "update-item", "--table-name", chosen.table, "--key",
               json{{"leaseKey", {{"S", entry.shard}}}}.dump(), "--update-expression",
               "SET checkpoint = :new, checkpointSubSequenceNumber = :sub, leaseCounter = :next "
               "REMOVE leaseOwner, checkpointOwner, pendingCheckpoint, "
               "pendingCheckpointSubSequenceNumber, pendingCheckpointState",
               "--condition-expression", condition, "--expression-attribute-values", values.dump()},
              chosen.for_dynamodb));
  return answer.has_value();
}

/// Writes the old rows into a new file, which is on the disk before the first row is moved. Returns
/// its name.
std::string keep_old_rows(const rewind_options& chosen, const table_scan& table,
                          const std::vector<lease_move>& moves) {
  ordered_json rows = ordered_json::array();
  for (const lease_move& entry : moves) {
    if (entry.target.empty()) continue;
    rows.push_back({{"written", entry.target}, {"row", table.rows.at(entry.shard)}});
  }
  const std::string text = ordered_json{{"table", chosen.table}, {"rows", rows}}.dump(2) + "\n";
  std::string time = detail::to_iso_8601(std::chrono::system_clock::now());
  std::replace(time.begin(), time.end(), ':', '-');
  const std::string name = chosen.table + "." + time + ".rows.json";
  const io::descriptor file(::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open()) cannot_set_up(name, "made");
  if (const auto error = io::write_all(file.get(), text)) {
    cannot_set_up(name + " cannot be written: " + error.message());
  }
  if (::fsync(file.get()) == -1 && errno != EINVAL) cannot_set_up(name, "written");
  return name;
}

std::vector<lease_move> plan(const rewind_options& chosen, const table_scan& table) {
  for (const std::string& shard : chosen.shards) {
    if (!table.leases.contains(shard)) {
      cannot_set_up("the table " + chosen.table + " has no lease of " + shard);
    }
  }
  if (chosen.target.empty()) return read_moves(chosen, table);
  try {
    return rewind_plan(chosen, table).make();
  } catch (const lease_table::bad_stream_answer& error) {
    cannot_set_up(std::string("what aws kinesis prints: ") + error.what());
  }
}

}  // namespace

command_status run_rewind(const rewind_options& chosen) {
  const table_scan before = scan_table(chosen);
  const auto second_scan = std::chrono::steady_clock::now() + chosen.interval;
  const std::vector<lease_move> moves = plan(chosen, before);
  print_moves(moves, before);
  std::cout << std::flush;
  const bool has_problem = std::any_of(moves.begin(), moves.end(),
                                       [](const lease_move& entry) { return entry.is_problem; });
  const auto count = std::count_if(moves.begin(), moves.end(),
                                   [](const lease_move& entry) { return !entry.target.empty(); });
  const bool can_write = !has_problem && count > 0;
  if (!chosen.is_to_be_written || !can_write) {
    std::cout << "nothing was written"
              << (can_write ? "; --yes writes, once all workers are stopped" : "") << std::endl;
    return has_problem ? command_status::finding : command_status::ok;
  }
  while (std::chrono::steady_clock::now() < second_scan) {
    cancellable_loop().run_one(second_scan);
  }
  const table_scan table = scan_table(chosen);
  refuse_if_renewed(moves, before, table);
  if (!chosen.target.empty()) {
    std::cout << "the old rows are in " << printable(keep_old_rows(chosen, table, moves))
              << std::endl;
  }
  std::size_t refused = 0;
  for (const lease_move& entry : moves) {
    if (entry.target.empty()) continue;
    if (!write_row(chosen, table.leases.at(entry.shard), table.rows.at(entry.shard), entry)) {
      std::cout << printable(entry.shard) << " was not written: its row has changed meanwhile"
                << std::endl;
      ++refused;
    }
  }
  std::cout << static_cast<std::size_t>(count) - refused << " of " << count << " rows were written"
            << std::endl;
  return refused > 0 ? command_status::finding : command_status::ok;
}

}  // namespace kclxx::host

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <fcntl.h>
#include <iostream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/arrival_time.hpp"
#include "host/commands.hpp"
#include "host/lease_table/observation.hpp"
#include "host/lease_table/stream_position.hpp"
#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "tool/files.hpp"
#include "tool/foreign_json.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/program.hpp"
#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

using lease_table::instant;
using lease_table::lease;
using lease_table::observation;
using lease_table::picture;
using lease_table::renewal_limit;
using nlohmann::json;
using nlohmann::ordered_json;
using std::chrono::milliseconds;

struct options {
  std::string table;
  std::string stream;                    ///< the application's; empty: not known
  std::vector<std::string> for_aws;      ///< options of aws, for DynamoDB
  std::vector<std::string> for_kinesis;  ///< options of aws kinesis
  bool is_json = false;
  bool is_watching = false;
  milliseconds interval = renewal_limit;  ///< between two scans

  // --rewind and --restore
  std::string target;            ///< a time, TRIM_HORIZON or LATEST; empty: `file` is restored
  std::string file;              ///< what an earlier move has left
  std::set<std::string> shards;  ///< empty: all
  bool is_to_be_written = false;

  [[nodiscard]] bool has_chosen(const std::string& shard) const {
    return shards.empty() || shards.contains(shard);
  }
};

// --- The program aws, with the user's credentials ----------------------------------------------

std::string last_line(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \r\n") + 1);
  return std::string(text.substr(text.find_last_of('\n') + 1));
}

/// Runs aws with these arguments and --output json, whatever comes of it.
/// Blocking: until it has ended. Errors: command_error when there is no aws; cancelled.
program_result run_aws(std::vector<std::string> arguments,
                       const std::vector<std::string>& aws_options) {
  if (!find_program("aws")) {
    cannot_set_up(
        "aws is not in PATH; on Debian: apt-get install awscli. Or let it run elsewhere: aws "
        "dynamodb scan --output json --table-name TABLE, and give what it prints to kclxx leases "
        "-");
  }
  arguments.insert(arguments.begin(), "aws");
  arguments.insert(arguments.end(), {"--output", "json"});
  arguments.insert(arguments.end(), aws_options.begin(), aws_options.end());
  return run_program(arguments);
}

/// What aws has printed; nothing: it failed with the error of that name. Errors: command_error when
/// it failed otherwise.
std::optional<std::string> output_unless(std::string_view error_name, program_result aws) {
  if (aws.end.is_success()) return std::move(aws.output);
  if (aws.error.find(error_name) != std::string::npos) return std::nullopt;
  cannot_set_up("aws ended with " + to_string(aws.end) + ": " + last_line(aws.error));
}

/// What a scan of a table prints; nothing: there is no such table. Blocking, errors: as above.
std::optional<std::string> scan_dynamodb(const std::string& table,
                                         const std::vector<std::string>& aws_options) {
  return output_unless(
      "ResourceNotFoundException",
      run_aws({"dynamodb", "scan", "--table-name", table, "--consistent-read"}, aws_options));
}

/// What a scan of the lease table prints. Blocking, errors: as above, also when there is no table.
std::string scan_leases(const options& chosen) {
  if (auto text = scan_dynamodb(chosen.table, chosen.for_aws)) return *std::move(text);
  cannot_set_up("there is no table " + chosen.table +
                " where aws looks; its name is applicationName, and the daemon creates it");
}

/// What `aws kinesis` prints. Blocking, errors: as above.
std::string ask_kinesis(std::vector<std::string> arguments, const options& chosen) {
  arguments.insert(arguments.begin(), "kinesis");
  return output_unless("(no error is expected)", run_aws(arguments, chosen.for_kinesis))
      .value_or("");
}

/// The shards of the stream, closed ones too. Blocking, errors: as above; bad_stream_answer.
std::vector<lease_table::stream_shard> list_shards(const options& chosen) {
  return lease_table::parse_shards(
      ask_kinesis({"list-shards", "--stream-name", chosen.stream}, chosen));
}

// --- What is in the table ----------------------------------------------------------------------

/// Scans the table, and with KCL 3.0 to 3.4 the one beside it, too.
lease_table::scan scan_with_aws(const options& chosen) {
  lease_table::scan found = lease_table::parse_scan(scan_leases(chosen));
  if (!found.other_rows.empty()) return found;
  const std::string beside = chosen.table + "-CoordinatorState";
  try {
    const auto state = scan_dynamodb(beside, chosen.for_aws);
    if (state) found.add_coordinator_state(*state);
  } catch (const command_error& error) {
    std::cerr << printable(beside + " cannot be read, so the leader is not known: " + error.what())
              << std::endl;
  }
  return found;
}

lease_table::scan read_scan(const options& chosen) {
  if (chosen.table != "-") {
    lease_table::scan found = scan_with_aws(chosen);
    found.stream = chosen.stream;
    // After the scan, or a shard that is made meanwhile could seem to be another stream's.
    if (!chosen.stream.empty()) found.shards = list_shards(chosen);
    return found;
  }
  return lease_table::parse_scan(
      std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()));
}

lease_table::scan read_scan_or_say_why_not(const options& chosen) {
  try {
    return read_scan(chosen);
  } catch (const lease_table::bad_scan& error) {
    cannot_set_up((chosen.table == "-" ? "stdin" : "what aws prints of " + chosen.table) + ": " +
                  error.what());
  } catch (const lease_table::bad_stream_answer& error) {
    cannot_set_up(std::string("what aws kinesis prints: ") + error.what());
  }
}

void print(const picture& seen, const options& chosen) {
  const std::int64_t now = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
  if (chosen.is_json) {
    std::cout << to_json(seen, chosen.table, now, chosen.is_watching) << std::flush;
    return;
  }
  if (chosen.is_watching && ::isatty(STDOUT_FILENO) == 1) std::cout << "\x1b[H\x1b[J";
  std::cout << printable(chosen.table == "-" ? "stdin" : "table " + chosen.table);
  if (seen.scans > 1) {
    std::cout << ", " << seen.scans << " scans in " << to_text(seen.observed);
  }
  std::cout << '\n' << to_table(seen, now) << std::flush;
}

command_status run_leases(const options& chosen) {
  // A watch may scan more often than a lease is renewed.
  observation seen(chosen.is_watching ? std::max(chosen.interval, renewal_limit) : chosen.interval);
  using clock = std::chrono::steady_clock;
  const clock::time_point begin = clock::now();
  for (;;) {
    seen.add(read_scan_or_say_why_not(chosen),
             std::chrono::duration_cast<milliseconds>(clock::now() - begin));
    const picture table = seen.look();
    // A hand-over that is still there in the second scan may be one that takes its time.
    const bool is_slow = table.scans > 1 && table.is_handing_over();
    const milliseconds needed = is_slow ? observation::hand_over_limit : chosen.interval;
    const bool is_enough = chosen.table == "-" || table.observed >= needed;
    if (chosen.is_watching || is_enough) print(table, chosen);
    if (!std::cout || (is_enough && !chosen.is_watching)) {
      return table.is_stuck() ? command_status::finding : command_status::ok;
    }
    cancellable_loop().run_one(clock::now() +
                               (chosen.is_watching ? chosen.interval : needed - table.observed));
  }
}

// --- Moves of positions ------------------------------------------------------------------------

struct table_scan {
  std::map<std::string, lease> leases;
  std::map<std::string, json> rows;  ///< as DynamoDB has them, of the leases
};

table_scan scan_table(const options& chosen) {
  const std::string text = scan_leases(chosen);
  try {
    table_scan result;
    for (lease& row : lease_table::parse_scan(text).leases) {
      result.leases.emplace(row.shard, std::move(row));
    }
    const json document = parse_foreign(text);
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
  rewind_plan(const options& chosen, const table_scan& table) : chosen_(chosen), table_(table) {
    if (chosen.target != "TRIM_HORIZON" && chosen.target != "LATEST") {
      time_ = lease_table::parse_instant(chosen.target);
    }
  }

  [[nodiscard]] std::vector<lease_move> make() const {
    std::map<std::string, lease_table::stream_shard> in_stream;
    for (const auto& shard : list_shards(chosen_)) in_stream.emplace(shard.id, shard);
    std::vector<lease_move> moves;
    for (const auto& [shard, row] : table_.leases) {
      if (!chosen_.has_chosen(shard)) continue;
      const auto found = in_stream.find(shard);
      moves.push_back(move_of(row, found == in_stream.end() ? nullptr : &found->second));
    }
    for (const auto& [id, shard] : in_stream) {
      if (chosen_.shards.empty() && !table_.leases.contains(id)) add_shard_without_row(moves, id);
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
           return lease_table::parse_iterator(ask_kinesis(arguments, chosen_));
         },
         [&](const std::string& iterator, int max_records) {
           return lease_table::parse_records(
               ask_kinesis({"get-records", "--shard-iterator", iterator, "--limit",
                            std::to_string(max_records)},
                           chosen_));
         }},
        *time_);
  }

  /// `shard`: that of the stream; null: the stream has none of this name.
  [[nodiscard]] lease_move move_of(const lease& row, const lease_table::stream_shard* shard) const {
    if (!row.stream.empty()) cannot_set_up("this table is of several streams");
    const auto stays = [&](std::string why) { return lease_move{row.shard, "", std::move(why)}; };
    if (shard == nullptr) return stays("the stream no longer has this shard");
    // Shards of different streams have the same names. TRIM_HORIZON repairs such a row.
    if (chosen_.target != "TRIM_HORIZON" && !lease_table::can_be_in(*shard, row.sequence_number)) {
      return {row.shard, "", "its position is of another stream than " + chosen_.stream, true};
    }
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

  const options& chosen_;
  const table_scan& table_;
  std::optional<instant> time_;
};

/// The moves that put back the rows of a file. Errors: command_error, std::system_error.
std::vector<lease_move> read_moves(const options& chosen, const table_scan& table) {
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
        const std::string number = row.at("checkpoint").at("S").get<std::string>();
        const std::string sub =
            row.value("checkpointSubSequenceNumber", json{{"N", "0"}}).at("N").get<std::string>();
        if (!sequence_position::from_string(number + '/' + sub)) {
          cannot_set_up(chosen.file + ": the row of " + shard + " has no position");
        }
        moves.push_back({shard, number, "restored", false, sub});
      }
    }
    if (moves.empty()) cannot_set_up(chosen.file + " has no row that is to be restored");
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
bool write_row(const options& chosen, const lease& row, const json& item, const lease_move& entry) {
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
              chosen.for_aws));
  return answer.has_value();
}

/// Writes the old rows into a new file, which is on the disk before the first row is moved. Returns
/// its name.
std::string keep_old_rows(const options& chosen, const table_scan& table,
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

std::vector<lease_move> plan(const options& chosen, const table_scan& table) {
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

/// Prints the old and the new position of each shard, and writes the new ones if that is asked for
/// and no worker renews a lease. A row is written only if it is still as it was read.
/// Status: finding when something is not moved as it should be.
/// Blocking: for the interval, and as long as aws. Errors: command_error, cancelled;
/// std::system_error for a file that cannot be read.
command_status run_rewind(const options& chosen) {
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
  std::ptrdiff_t written = 0;
  const auto print_written = [&] {
    std::cout << written << " of " << count << " rows were written" << std::endl;
  };
  for (const lease_move& entry : moves) {
    if (entry.target.empty()) continue;
    bool is_written = false;
    try {
      is_written =
          write_row(chosen, table.leases.at(entry.shard), table.rows.at(entry.shard), entry);
    } catch (...) {
      print_written();
      throw;
    }
    if (is_written) {
      ++written;
    } else {
      std::cout << printable(entry.shard) << " was not written: its row has changed meanwhile"
                << std::endl;
    }
  }
  print_written();
  return written < count ? command_status::finding : command_status::ok;
}

/// Errors: CLI::ValidationError.
void check_target(const std::string& target) {
  if (target == "TRIM_HORIZON" || target == "LATEST") return;
  const auto time = lease_table::parse_instant(target);
  if (!time) {
    throw CLI::ValidationError(
        "--rewind " + target +
        " is no TRIM_HORIZON, no LATEST and no time with its zone, as 2026-11-29T08:00:00Z");
  }
  // Both are in milliseconds, which do not overflow within four digits of a year.
  if (*time > std::chrono::floor<lease_table::instant>(
                  std::chrono::system_clock::now().time_since_epoch())) {
    throw CLI::ValidationError("--rewind " + target + " is in the future");
  }
}

}  // namespace

void add_leases_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"leases",
       "Shows the lease table of an application: who has which shard, whether the lease is\n"
       "renewed, how old the last record before the checkpoint is, what is stuck and why, and "
       "what\n"
       "each worker has. With --stream also which rows belong to no shard of that stream. It is\n"
       "read by the program aws, with your credentials. Exit status 1: something is stuck.\n"
       "With --rewind it moves the positions of a stopped application, of any language.",
       "kclxx leases my-app --stream my-stream\n"
       "  kclxx leases my-app --rewind 2026-11-29T08:00:00Z --stream my-stream\n"
       "  aws dynamodb scan --table-name my-app --output json | kclxx leases -"},
      child_use::none, run);
  auto chosen = std::make_shared<options>();
  command
      .add_option("TABLE", chosen->table,
                  "applicationName; - reads from stdin what aws dynamodb scan has printed")
      ->required();
  command.add_flag("--json", chosen->is_json, "An object, with --watch one in each line");
  auto* const watch = command.add_flag("--watch", chosen->is_watching, "Repeat until Ctrl-C");
  add_seconds(command, "--interval", chosen->interval,
              "Between two scans. A lease is renewed each third of failoverTimeMillis");
  auto* const stream = add_option(command, "NAME", "--stream", chosen->stream,
                                  "The application's stream: tells which rows it cannot have");
  auto* const target =
      add_option(command, "TIME", "--rewind", chosen->target,
                 "Show what would come again if each shard was read from that time on: a date and "
                 "time with its zone, TRIM_HORIZON or LATEST")
          ->needs(stream);
  auto* const restore =
      add_option(command, "FILE", "--restore", chosen->file,
                 "Show how the rows in a file that --rewind has left would be put back")
          ->excludes(target);
  const std::vector<CLI::Option*> of_moves{
      command.add_flag("--yes", chosen->is_to_be_written, "Write it, if no worker renews a lease"),
      add_option(command, "ID", "--shard", chosen->shards, "Move that shard alone; may be repeated")
          ->allow_extra_args(false)};
  std::vector<CLI::Option*> of_aws{watch, target, restore, stream};
  for (const auto& [name, type] : {std::pair("--profile", "NAME"), std::pair("--region", "REGION"),
                                   std::pair("--endpoint-url", "URL")}) {
    const auto pass = [chosen, name = name](const std::string& value) {
      chosen->for_aws.insert(chosen->for_aws.end(), {name, value});
      const bool is_endpoint = std::string_view(name) == "--endpoint-url";
      if (!is_endpoint) chosen->for_kinesis.insert(chosen->for_kinesis.end(), {name, value});
    };
    of_aws.push_back(
        command.add_option_function<std::string>(name, pass, "For aws")->type_name(type));
  }
  auto* const kinesis_endpoint =
      command
          .add_option_function<std::string>(
              "--kinesis-endpoint-url",
              [chosen](const std::string& value) {
                chosen->for_kinesis.insert(chosen->for_kinesis.end(), {"--endpoint-url", value});
              },
              "For aws kinesis; --endpoint-url is DynamoDB's")
          ->type_name("URL");
  command.callback([=, &command, &run] {
    for (const CLI::Option* option : of_aws) {
      if (chosen->table == "-" && option->count() > 0) {
        throw CLI::ValidationError(option->get_name() +
                                   " is for a table that aws reads, not for -");
      }
    }
    // Without it the shards of another stream of this name, in AWS, would count.
    if (stream->count() > 0 && command.count("--endpoint-url") > 0 &&
        kinesis_endpoint->count() == 0) {
      throw CLI::ValidationError("--endpoint-url is DynamoDB's: give --kinesis-endpoint-url, too");
    }
    if (target->count() + restore->count() == 0) {
      for (const CLI::Option* option : of_moves) {
        if (option->count() == 0) continue;
        throw CLI::ValidationError(option->get_name() + " is for --rewind and --restore");
      }
      run.status = static_cast<int>(run_leases(*chosen));
      return;
    }
    if (chosen->is_json || chosen->is_watching) {
      throw CLI::ValidationError("--json and --watch are not for --rewind and --restore");
    }
    if (target->count() > 0) check_target(chosen->target);
    run.status = static_cast<int>(run_rewind(*chosen));
  });
}

}  // namespace kclxx::host

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "host/aws_program.hpp"
#include "host/commands.hpp"
#include "host/lease_table/observation.hpp"
#include "host/lease_table/stream_position.hpp"
#include "host/rewind.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

using lease_table::observation;
using lease_table::picture;
using lease_table::renewal_limit;
using std::chrono::milliseconds;

struct options {
  std::string table;
  std::string stream;  ///< empty: not known
  std::vector<std::string> for_aws;
  std::vector<std::string> for_kinesis;
  bool is_json = false;
  bool is_watching = false;
  milliseconds interval = renewal_limit;
};

/// Scans the table, and with KCL 3.0 to 3.4 the one beside it, too.
lease_table::scan scan_with_aws(const std::string& table, const std::vector<std::string>& for_aws) {
  const auto text = scan_dynamodb(table, for_aws);
  if (!text) {
    cannot_set_up("there is no table " + table +
                  " where aws looks; its name is applicationName, and the daemon creates it");
  }
  lease_table::scan found = lease_table::parse_scan(*text);
  if (!found.other_rows.empty()) return found;
  const std::string beside = table + "-CoordinatorState";
  try {
    const auto state = scan_dynamodb(beside, for_aws);
    if (state) found.add_coordinator_state(*state);
  } catch (const command_error& error) {
    std::cerr << printable(beside + " cannot be read, so the leader is not known: " + error.what())
              << std::endl;
  }
  return found;
}

lease_table::scan read_scan(const options& chosen) {
  if (chosen.table != "-") {
    lease_table::scan found = scan_with_aws(chosen.table, chosen.for_aws);
    found.stream = chosen.stream;
    // After the scan, or a shard that is made meanwhile could seem to be another stream's.
    if (!chosen.stream.empty()) found.shards = list_shards(chosen.stream, chosen.for_kinesis);
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
  auto rewind = std::make_shared<rewind_options>();
  auto* const stream = command
                           .add_option("--stream", chosen->stream,
                                       "The application's stream: tells which rows it cannot have")
                           ->type_name("NAME");
  auto* const target =
      command
          .add_option("--rewind", rewind->target,
                      "Show what would come again if each shard was read from that time on: a date "
                      "and time with its zone, TRIM_HORIZON or LATEST")
          ->type_name("TIME")
          ->needs(stream);
  auto* const restore = command
                            .add_option("--restore", rewind->file,
                                        "Show how the rows in a file that --rewind has left "
                                        "would be put back")
                            ->type_name("FILE")
                            ->excludes(target);
  const std::vector<CLI::Option*> of_moves{
      command.add_flag("--yes", rewind->is_to_be_written, "Write it, if no worker renews a lease"),
      command.add_option("--shard", rewind->shards, "Move that shard alone; may be repeated")
          ->type_name("ID")
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
    if (target->count() > 0) check_target(rewind->target);
    rewind->table = chosen->table;
    rewind->stream = chosen->stream;
    rewind->for_kinesis = chosen->for_kinesis;
    rewind->interval = chosen->interval;
    rewind->for_dynamodb = chosen->for_aws;
    run.status = static_cast<int>(run_rewind(*rewind));
  });
}

}  // namespace kclxx::host

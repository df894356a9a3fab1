// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <functional>
#include <iostream>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include <boost/algorithm/string/case_conv.hpp>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/trim.hpp>

#include "tool/commands.hpp"
#include "tool/local/local_launch.hpp"

namespace kclxx::tool {

namespace {

using need = local_call::need;

/// A command whose options are passed unchanged to the program for Node.js.
class passed_on_command {
 public:
  /// `start` does the call, and gives the exit status unless it becomes another program.
  passed_on_command(CLI::App& local, const command_text& text, need needs, invocation& run,
                    std::function<int(const local_call&)> start = become_node)
      : app_(add_command(local, text, child_use::none, run)) {
    call_->command = text.name;
    call_->needs = needs;
    app_.add_option("--directory", call_->directory,
                    "The folder of its state and logs\n"
                    "[$XDG_STATE_HOME/kclxx/local, or ~/.local/state/kclxx/local]")
        ->type_name("DIR")
        ->envname("KCLXX_LOCAL_DIRECTORY");
    app_.callback([call = call_, values = values_, start = std::move(start), &run] {
      if (call->takes_input && call->input.empty()) throw CLI::RequiredError("FILE or --data FILE");
      for (const auto& one : *values) {
        if (one.option->count() > 0 || !one.text.empty()) {
          call->options.emplace_back(one.name, one.text);
        }
      }
      run.status = start(*call);
    });
  }

  /// The program for Node.js knows it in lower case, and without the dashes.
  CLI::Option& option(const std::string& name, const std::string& help,
                      const std::string& initial = "") {
    value& one = add(name, initial);
    one.option = app_.add_option(name, one.text, help);
    if (!initial.empty()) one.option->capture_default_str();
    return *one.option;
  }
  CLI::Option& required(const std::string& name, const std::string& help) {
    return *option(name, help).required();
  }
  /// From 1 to `most`.
  CLI::Option& number(const std::string& name, const std::string& help, std::uint64_t most,
                      const std::string& initial = "") {
    return *option(name, help, initial).type_name("N")->check(whole_number_between(1, most));
  }
  void flag(const std::string& name, const std::string& help) {
    value& one = add(name, "");
    one.option = app_.add_flag_callback(
        name, [&one] { one.text = "yes"; }, help);
  }

  [[nodiscard]] CLI::App& app() { return app_; }
  [[nodiscard]] local_call& call() { return *call_; }

 private:
  [[noreturn]] static int become_node(const local_call& call) { run_local(call); }

  struct value {
    std::string name;
    std::string text;
    CLI::Option* option;
  };

  value& add(const std::string& name, const std::string& initial) {
    const std::string plain = boost::trim_left_copy_if(name, boost::is_any_of("-"));
    return values_->emplace_back(value{boost::to_lower_copy(plain), initial, nullptr});
  }

  CLI::App& app_;
  std::shared_ptr<local_call> call_ = std::make_shared<local_call>();
  std::shared_ptr<std::list<value>> values_ = std::make_shared<std::list<value>>();
};

const char* const offline_help = "Use only what npm's cache and Maven's local repository have";

void add_fetch(CLI::App& local, invocation& run) {
  CLI::App& command = add_command(
      local,
      {"fetch",
       "Downloads what the other commands need, with npm and Maven, into the user's cache, and\n"
       "prints the folders. The other commands do this when something is missing.",
       "kclxx local fetch"},
      child_use::none, run);
  auto is_offline = std::make_shared<bool>(false);
  command.add_flag("--offline", *is_offline, offline_help);
  command.callback([is_offline] {
    for (const std::string& folder : fetch_local(*is_offline)) std::cout << folder << "\n";
  });
}

void add_start(CLI::App& local, invocation& run) {
  passed_on_command start(
      local,
      {"start",
       "Starts a local Kinesis and DynamoDB, waits until both listen, and prints shell commands\n"
       "that direct AWS clients and `kclxx daemon run` to them. Both are empty, run until `stop`,\n"
       "and store nothing on disk. They accept connections from this machine alone, from all of\n"
       "its users, without authentication. Exit status 1: they run already.",
       "eval \"$(kclxx local start)\""},
      need::everything, run);
  start.call().changes_state = true;
  start.number("--kinesis-port", "Kinesis's port  [a free one]", 65535);
  start.number("--dynamodb-port", "DynamoDB's port  [a free one]", 65535);
  start.app().add_flag("--offline", start.call().is_offline, offline_help);
}

void add_rest_of_state(CLI::App& local, invocation& run) {
  passed_on_command stop(local, {"stop", "Ends both and discards their data.", "kclxx local stop"},
                         need::nothing, run);
  stop.call().changes_state = true;
  // NOLINTNEXTLINE(bugprone-unused-raii): it adds itself to the command line
  passed_on_command(local,
                    {"env", "Prints the shell commands of `start` again, for another shell.",
                     "eval \"$(kclxx local env)\""},
                    need::nothing, run);
  passed_on_command(local,
                    {"status", "Shows what runs. Exit status 1: not both run.",
                     "kclxx local status || kclxx local start"},
                    need::nothing, run);
}

void add_streams(CLI::App& local, invocation& run) {
  passed_on_command create(local,
                           {"create-stream", "Creates a stream, and waits until it can be used.",
                            "kclxx local create-stream words --shards 4"},
                           need::what_runs, run);
  create.required("STREAM", "Its name");
  create.number("--shards", "How many", 5000, "1");
  passed_on_command shards(local,
                           {"shards", "Lists a stream's shards.", "kclxx local shards words"},
                           need::what_runs, run);
  shards.required("STREAM", "The stream");
  shards.flag("--tsv", "Without a header line, separated by tabs: for scripts");
}

void add_put(CLI::App& local, invocation& run) {
  passed_on_command put(
      local,
      {"put",
       "Puts each line of a file on a stream as a record. Blank lines are left out and counted.\n"
       "By default each line has a partition key of its own. With --data the lines are payloads\n"
       "that are put again and again, as a load.",
       "kclxx local put words README.md\n"
       "  echo 'user-1:clicked' | kclxx local put words - --key-separator :\n"
       "  kclxx local put clicks --data events.jsonl --rate 200"},
      need::what_runs, run);
  put.required("STREAM", "The stream");
  put.call().takes_input = true;
  auto& file = *put.app().add_option("FILE", put.call().input, "The file; - is stdin");
  auto& data = *put.app()
                    .add_option_function<std::string>(
                        "--data",
                        [call = &put.call()](const std::string& name) {
                          call->input = name;
                          call->options.emplace_back("data", "yes");
                        },
                        "A file with a payload in each line: they are put in turn, until --records "
                        "or Ctrl-C")
                    ->type_name("FILE")
                    ->excludes(&file);
  put.number("--records", "With --data: how many records to put  [no end]", 1'000'000'000)
      .needs(&data);
  put.number("--rate", "Records a second  [as fast as they are taken]", 1'000'000);
  auto& key = put.option("--partition-key", "The key of all records");
  put.option("--key-separator",
             "The text between a line's key and its data; the record is the data alone")
      .type_name("TEXT")
      ->excludes(&key);
}

void add_resharding(CLI::App& local, invocation& run) {
  passed_on_command split(
      local,
      {"split", "Splits a shard in the middle, and prints its child shards.",
       "kclxx local split words shardId-000000000000\n  kclxx local split words 0"},
      need::what_runs, run);
  split.required("STREAM", "The stream");
  split.required("SHARD", "The shard, or its number");
  passed_on_command merge(local,
                          {"merge", "Merges two neighbouring shards, and prints their child.",
                           "kclxx local merge words 1 2"},
                          need::what_runs, run);
  merge.required("STREAM", "The stream");
  merge.required("SHARD", "A shard, or its number");
  merge.required("OTHER", "Its neighbour");
}

void add_leases(CLI::App& local, invocation& run) {
  passed_on_command create(
      local,
      {"create-lease-table",
       "Creates the lease table that the daemon of KCL 3.x creates at its first start, with a "
       "free\n"
       "lease for each shard without a parent, or fills an empty one. This saves half a minute, "
       "in\n"
       "which the KCL waits for other workers that may be filling the table.",
       "kclxx local create-lease-table my-application --stream words"},
      need::what_runs, run);
  create.required("APPLICATION", "applicationName in the daemon's properties");
  create.required("--stream", "Its stream").type_name("NAME");
  passed_on_command leases(
      local,
      {"leases",
       "Shows the lease table of an application, as kclxx leases does, and how many records come\n"
       "after each checkpoint (lag), and the age of the oldest of these.",
       "kclxx local leases my-application --watch"},
      need::what_runs, run, show_local_leases);
  leases.required("APPLICATION", "applicationName in the daemon's properties");
  leases
      .option("--stream",
              "The stream it reads  [the one of the same name, or the only one there is]")
      .type_name("NAME");
  leases.flag("--watch", "Repeat each second");
  leases.flag(
      "--tsv",
      "For scripts: a header line, then a line for each lease, its fields separated by tabs");
}

}  // namespace

void add_local_command(CLI::App& app, invocation& run) {
  CLI::App& local = *app.add_subcommand(
      "local", "Starts and stops a local Kinesis and DynamoDB, puts records, shows leases.");
  local.require_subcommand(1);
  local.footer(
      "kclxx local COMMAND --help has an example of each. To begin with:\n"
      "  eval \"$(kclxx local start)\"\n"
      "  kclxx local create-stream words --shards 2\n"
      "  kclxx local put words README.md\n"
      "  kclxx local shards words\n"
      "  kclxx local stop");
  add_fetch(local, run);
  add_start(local, run);
  add_rest_of_state(local, run);
  add_streams(local, run);
  add_put(local, run);
  add_resharding(local, run);
  add_leases(local, run);
}

}  // namespace kclxx::tool

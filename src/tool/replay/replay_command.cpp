// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "io/daemon_process.hpp"
#include "tool/atomic_file.hpp"
#include "tool/commands.hpp"
#include "tool/embedded.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/replay/effect_files.hpp"
#include "tool/replay/options.hpp"
#include "tool/replay/parked_files.hpp"
#include "tool/replay/replay_files.hpp"
#include "tool/replay/replay_result.hpp"

namespace kclxx::tool {

namespace {

struct replay_arguments {
  std::vector<std::string> files;
  replay::options options;
  std::optional<std::string> faults;
  unsigned parallel = 8;
  bool prints_json = false;
  bool is_parked = false;
  std::string run;  // of parked records, to be continued
  std::string report;
  std::string effects;
};

/// Before anything is played.
void require_files_to_read_again(const replay_arguments& arguments) {
  for (const std::string& file : arguments.files) {
    std::error_code ignored;
    if (file != "-" && (!std::filesystem::exists(file, ignored) ||
                        std::filesystem::is_regular_file(file, ignored))) {
      continue;
    }
    throw command_error(exit_status::usage,
                        file + " cannot be read twice, which kill-at, kill and --effects need");
  }
}

void require_comparable_effects(const replay_arguments& arguments,
                                const std::vector<std::string>& child) {
  const auto has_place = [](const std::string& word) {
    return word.find(effect_directories::placeholder) != std::string::npos;
  };
  if (arguments.options.faults == replay::faults{}) {
    throw command_error(exit_status::usage,
                        "--effects compares with a run without faults: --faults is missing");
  }
  if (!has_place(arguments.effects) || std::none_of(child.begin(), child.end(), has_place)) {
    throw command_error(exit_status::usage,
                        "--effects needs {dir} in its FILE and in the child's command: a directory "
                        "that each of the two runs has of its own");
  }
}

void validate(const replay_arguments& arguments, const std::vector<std::string>& child) {
  if (std::count(arguments.files.begin(), arguments.files.end(), "-") > 1) {
    throw command_error(exit_status::usage, "- is there twice: stdin is one transcript");
  }
  const bool kills = replay::kills(arguments.options.faults);
  if (kills || !arguments.effects.empty()) require_files_to_read_again(arguments);
  if (!arguments.effects.empty()) require_comparable_effects(arguments, child);
  if (kills && arguments.options.expected == replay::expectation::answers) {
    throw command_error(exit_status::usage,
                        "--expect excludes kill-at and kill: no recording has the answers of a "
                        "successor; --expect-final compares where it came to");
  }
}

int run_replay(replay_arguments& arguments, const std::vector<std::string>& child) {
  try {
    if (arguments.faults) arguments.options.faults = replay::parse_faults(*arguments.faults);
  } catch (const std::invalid_argument& error) {
    throw command_error(exit_status::usage, error.what());
  }
  std::vector<replay::parked_shard> parked;
  std::vector<replay_input> inputs;
  if (arguments.is_parked) {
    parked = read_parked_files(arguments.files, arguments.run);
    for (const auto& shard : parked) inputs.push_back({shard.files, shard.dialogue});
  } else {
    validate(arguments, child);
    for (const std::string& file : arguments.files) inputs.push_back({file});
  }
  std::optional<atomic_file> report;
  if (!arguments.report.empty()) {
    arguments.options.keeps_timeline = true;
    const std::string_view page = embedded::report_page;
    // Before an hour of replay.
    report.emplace(arguments.report, page.substr(0, page.find("-->")));
  }
  install_signal_handlers(ignored_signals::stay_ignored);
  replay_result result = arguments.effects.empty()
                             ? replay_files(inputs, child, arguments.options, arguments.parallel)
                             : replay_files_twice(inputs, child, arguments.options,
                                                  arguments.parallel, arguments.effects);
  if (arguments.is_parked) count_parked(parked, result);
  if (arguments.prints_json) {
    print_json(std::cout, result);
  } else {
    print_text(std::cout, result);
  }
  if (report) {
    print_report(report->stream(), result);
    report->commit();
  }
  return static_cast<int>(result.status());
}

/// An option with two values, of which the first is the default.
void add_choice(CLI::App& command, const std::string& name, const std::string& description,
                const std::string& first, const std::string& second,
                const std::function<void(bool)>& take_second) {
  command
      .add_option_function<std::string>(
          name, [=](const std::string& value) { take_second(value == second); }, description)
      ->check(CLI::IsMember({first, second}).description(""))
      ->type_name(first + "|" + second)
      ->default_str(first);
}

void add_options(CLI::App& command, replay_arguments& arguments) {
  using replay::answers_from;
  using replay::expectation;
  add_option(command, "", "FILE", arguments.files, "Transcripts, one for each shard; - is stdin")
      ->required();
  auto* const parked = command.add_flag(
      "--parked", arguments.is_parked,
      "The files are of parked records: deliver them again, each shard's in order and once each,\n"
      "under a name that no run had before");
  add_option(command, "RUN", "--as", arguments.run,
             "Continue a run of --parked that broke off, under the name that it has printed")
      ->needs(parked)
      ->check([](const std::string& name) {
        return replay::parked_records::is_run(name) ? std::string()
                                                    : name + " is not the name of a run";
      });
  add_choice(command, "--answers",
             "Checkpoints fail where the recorded ones failed, or only where the child is wrong",
             "recorded", "model", [&arguments](bool is_model) {
               arguments.options.answers = is_model ? answers_from::model : answers_from::recorded;
             });
  command
      .add_option_function<std::string>(
          "--faults", [&arguments](const std::string& text) { arguments.faults = text; },
          "Faults to inject, NAME=VALUE separated by commas:\n"
          "throttle=P, dependency=P: checkpoints fail with this probability;\n"
          "shutdown-at=N: shutdownRequested in place of batch N;\n"
          "lease-lost-at=N: the lease is lost while batch N is processed;\n"
          "end-of-input-at=N: the daemon dies when batch N is written;\n"
          "kill-at=N: the child is killed when batch N is written, and a successor\n"
          "continues after what was persisted;\n"
          "kill=P: the same, with this probability, when the child asks for a checkpoint,\n"
          "which is then not persisted;\n"
          "seed=S (1): the same seed injects the same faults")
      ->type_name("FAULTS");
  auto* all = command.add_flag_callback(
      "--expect", [&arguments] { arguments.options.expected = expectation::answers; },
      "Compare each status and checkpoint with the recorded ones");
  command
      .add_flag_callback(
          "--expect-final",
          [&arguments] { arguments.options.expected = expectation::final_position; },
          "Compare only the last position that was persisted")
      ->excludes(all)
      ->excludes(parked);
  all->excludes(parked);
  add_seconds(command, "--timeout", arguments.options.timeout,
              "How long a child may take for an action before it counts as hung", 1e6);
  add_option(command, "N", "--parallel", arguments.parallel,
             "How many shards are played in parallel")
      ->check(whole_number_between(1, 1000))
      ->capture_default_str();
  add_option(command, "FILE.html", "--report", arguments.report,
             "Write a page with plots of each shard over time");
  add_option(command, "FILE", "--effects", arguments.effects,
             "Play without faults, then with them, and compare the lines that the child left in\n"
             "this file or directory. {dir}, in FILE and in the child's command, stands for an\n"
             "empty directory, another one for each run")
      ->excludes(parked);
  command.add_flag("--json", arguments.prints_json, "Print the summary as JSON");
}

}  // namespace

void add_replay_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"replay",
       "Plays the daemon's side of transcripts against a child, and reports what the child did.\n"
       "Exit status: 0 all is well, 1 the report has a finding, 3 the child failed, 4 bad "
       "transcript.",
       "kclxx replay captured/*.jsonl -- ./word_count counts\n"
       "  kclxx replay --parked again.jsonl -- ./my_processor\n"
       "  kclxx replay --faults throttle=0.1,shutdown-at=12,seed=7 shard0.jsonl -- ./word_count "
       "counts\n"
       "  kclxx replay --faults kill=0.2 --effects {dir}/shardId-000000000000.counts shard0.jsonl "
       "-- ./word_count {dir}"},
      child_use::required, run);
  auto arguments = std::make_shared<replay_arguments>();
  add_options(command, *arguments);
  command.callback([arguments, &run] {
    ::setenv(io::daemon_variable, io::no_daemon, 1);
    run.status = run_replay(*arguments, run.child);
  });
}

}  // namespace kclxx::tool

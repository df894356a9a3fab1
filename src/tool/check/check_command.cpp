// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/algorithm/string/join.hpp>

#include "io/process_identity.hpp"
#include "tool/check/rule.hpp"
#include "tool/command.hpp"
#include "tool/files.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/child_dialogue.hpp"
#include "tool/process/program.hpp"

namespace kclxx::check {

namespace {

using names = std::vector<std::string>;

struct check_options {
  names only;
  check::settings settings;
  std::string data;
  std::string junit;
  bool lists = false;
};

std::string unknown_rule(const std::string& name) {
  const auto& rules = all_rules();
  const bool is_known =
      std::any_of(rules.begin(), rules.end(), [&](const rule& rule) { return rule.name == name; });
  return is_known ? "" : "there is no rule '" + name + "'; --list names them";
}

std::vector<rule> chosen_rules(const check_options& options) {
  std::vector<rule> rules;
  for (const rule& rule : all_rules()) {
    const auto& only = options.only;
    const bool is_named = std::find(only.begin(), only.end(), rule.name) != only.end();
    if (only.empty() || is_named) rules.push_back(rule);
  }
  return rules;
}

std::vector<finished_rule> run_rules(const std::vector<rule>& rules, const settings& settings,
                                     const names& command) {
  // In the background of a shell SIGINT and SIGQUIT are ignored. The children would inherit that
  // and seem to survive them.
  install_signal_handlers(ignored_signals::are_taken);
  std::signal(SIGQUIT, SIG_DFL);
  // Kills at the end what the children have left in sessions of their own: such processes become
  // children of this process, the subreaper.
  const std::shared_ptr<void> orphans(nullptr, [](void*) { kill_children(); });
  const child_starter start = [&command] {
    return std::make_unique<child_dialogue>(command, child_dialogue::error_output::kept);
  };
  write_tap_header(std::cout, rules.size());
  std::vector<finished_rule> finished;
  bool answers_initialize = true;  // without that each rule would come to the same end
  for (const rule& rule : rules) {
    result outcome{result::verdict::skipped, "not run, since the child does not answer initialize"};
    if (answers_initialize) outcome = run_rule(rule, start, settings);
    if (rule.name == "initialize") answers_initialize = outcome.is == result::verdict::passed;
    finished.push_back({rule, std::move(outcome)});
    write_tap(std::cout, finished.size(), rule, finished.back().result);
    std::cout.flush();
  }
  return finished;
}

command_status run_check(check_options& options, const names& command) {
  const auto rules = chosen_rules(options);
  std::optional<result_file> junit;
  if (!options.junit.empty()) junit.emplace(options.junit, junit_beginning);
  if (!options.data.empty()) options.settings.payloads = read_payloads(options.data);
  options.settings.run =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::vector<finished_rule> finished;
  try {
    finished = run_rules(rules, options.settings, command);
  } catch (const start_error& error) {
    std::cout << "Bail out! " << error.what() << '\n';
    throw command_error(command_status::setup_failed, error.what());
  }
  if (junit) {
    write_junit(junit->stream(), boost::join(command, " "), finished);
    junit->commit();
  }
  names too_slow;
  for (const finished_rule& rule : finished) {
    if (rule.result.has_timed_out) too_slow.emplace_back(rule.rule.name);
  }
  if (!too_slow.empty()) {
    std::cerr << "kclxx check: not judged, since the child missed --timeout before it came to what "
                 "the rule is about: "
              << boost::join(too_slow, ", ") << '\n';
  }
  if (count(finished, result::verdict::failed) > 0 || !too_slow.empty()) {
    return command_status::finding;
  }
  if (count(finished, result::verdict::passed) > 0) return command_status::ok;
  std::cerr << "kclxx check: no result: every rule was skipped (the first: "
            << finished.front().result.seen << ")" << '\n';
  return command_status::finding;
}

}  // namespace

}  // namespace kclxx::check

namespace kclxx {

void tool::add_check_command(CLI::App& app, invocation& run) {
  CLI::App& command = add_command(
      app,
      {"check",
       "Checks a child in any language against the rules of the protocol. The child is started\n"
       "anew for each rule. TAP goes to stdout; the status is 1 when a rule is broken, or all are "
       "skipped.",
       "kclxx check -- ./word_count counts 0\n"
       "  kclxx check --only shard-end shard-end-throttled -- python3 processor.py\n"
       "  kclxx check --junit results.xml --poison boom -- ./throws_at_boom"},
      child_use::required, run);
  auto options = std::make_shared<check::check_options>();
  const CLI::Validator is_rule(check::unknown_rule, "");
  command.add_flag(
      "--list", options->lists,
      "Print each rule's name, its number in docs/protocol.md and what it expects; needs "
      "no child");
  command.parse_complete_callback([options, &run] {
    if (!options->lists) return require_child(run);
    for (const check::rule& rule : check::chosen_rules(*options)) {
      std::cout << rule.name << '\t' << rule.cites << '\t' << rule.expected << '\n';
    }
    throw CLI::Success();
  });
  add_option(command, "RULE", "--only", options->only, "Check these rules alone")->check(is_rule);
  add_seconds(command, "--timeout", options->settings.limits.step,
              "How long the child may take for one step");
  add_seconds(command, "--retry-limit", options->settings.limits.retries,
              "How long the child may retry a checkpoint");
  add_option(command, "FILE", "--data", options->data,
             "A FILE with a payload in each line: the records' data, in turn");
  add_option(command, "TEXT", "--poison", options->settings.poison,
             "The child's processor throws at a record with this data");
  add_option(command, "TEXT", "--prints", options->settings.prints,
             "The child's processor prints to stdout, without a newline, at a record with "
             "this data");
  add_option(command, "FILE", "--junit", options->junit, "Write the results as JUnit XML, too");
  command.callback([options, &run] {
    ::setenv(io::daemon_variable, io::no_daemon, 1);
    run.status = static_cast<int>(check::run_check(*options, run.child));
  });
}

}  // namespace kclxx

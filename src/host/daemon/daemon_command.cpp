// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <memory>
#include <regex>
#include <string>

#include "host/commands.hpp"
#include "host/daemon/jars.hpp"
#include "host/daemon/launch.hpp"
#include "tool/text.hpp"

namespace kclxx::host {

using namespace tool;

namespace {

void add_kcl_option(CLI::App& command, kcl_choice& kcl) {
  command
      .add_option_function<std::string>(
          "--kcl", [&kcl](const std::string& text) { kcl = *kcl_choice::parse(text); },
          "The KCL: 2 or 3 for the tested version, or a version like 3.2.0  [3]")
      ->type_name("VERSION")
      ->check([](const std::string& text) {
        return kcl_choice::parse(text) ? "" : text + " is neither 2 or 3 nor a version like 3.2.0";
      });
}

std::string not_a_size(const std::string& text) {
  static const std::regex size("[0-9]{1,19}[kKmMgG]?");
  return std::regex_match(text, size) ? "" : text + " is not a size; write for example 512m or 2g";
}

/// Adds the options that `run`, `print-command` and `check` share.
void add_common_options(CLI::App& command, launch_options& options) {
  command
      .add_option("FILE", options.files,
                  "The daemon's properties, a file for each stream; KCLXX_PROPERTY_<key>=value "
                  "overrides in all")
      ->required();
  add_kcl_option(command, options.kcl);
  add_option(command, "SIZE", "--heap", options.heap,
             "The maximum size of Java's heap, like 512m  [half of the memory]")
      ->check(CLI::Validator(not_a_size, ""));
  auto* const jars =
      add_option(command, "DIR", "--jars", options.place.jars, "The folder with the daemon's jars");
  add_option(command, "DIR", "--cache", options.place.cache,
             "The folder that `fetch --cache` was given")
      ->excludes(jars);
  command.add_flag(
      "--stock", options.is_stock,
      "AWS's classes alone, without kclxx's, which serve several streams and write batches for "
      "less");
}

void add_launch(CLI::App& daemon, const command_text& text, void (*launch)(const launch_options&),
                invocation& run) {
  CLI::App& command = add_command(daemon, text, child_use::options, run);
  auto options = std::make_shared<launch_options>();
  add_common_options(command, *options);
  add_option(command, "FILE", "--logback", options->logging,
             "The daemon's logging configuration instead of the built-in one");
  command.callback([options, launch, &run] {
    options->java_options = run.child;
    launch(*options);
  });
}

std::string count_of(std::size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

/// Finds the problems of the last of these files. `why_not`: why the values were not judged.
std::vector<diagnostic> diagnostics_of(const launch_options& options,
                                       std::vector<named_properties>& streams,
                                       std::string& why_not) {
  named_properties& stream = streams.back();
  try {
    stream.content = read_properties(options, stream.file);
    reader_answer answer = ask_reader(options, stream.content);
    why_not = answer.why_not;
    return find_problems(options, streams, std::move(answer));
  } catch (const properties_error& error) {
    return {{severity::error, error.line(), "", error.what(), "The daemon does not start.",
             "Correct it."}};
  }
}

int list_diagnostics(const launch_options& options, bool is_strict) {
  std::string why_not;
  std::size_t errors = 0;
  std::size_t warnings = 0;
  std::vector<named_properties> streams;
  for (const std::string& file : options.files) {
    streams.push_back({file, {}});
    for (const diagnostic& finding : diagnostics_of(options, streams, why_not)) {
      const bool is_error = finding.level == severity::error;
      (is_error ? errors : warnings) += 1;
      std::cout << printable(finding.origin.empty() ? file : finding.origin);
      if (finding.line != 0) std::cout << ":" << finding.line;
      std::cout << (is_error ? ": error: " : ": warning: ") << printable(finding.what)
                << "\n    why: " << printable(finding.why)
                << "\n    fix: " << printable(finding.fix) << "\n";
    }
  }
  std::cout << count_of(errors, "error") << ", " << count_of(warnings, "warning") << std::endl;
  if (!why_not.empty()) {
    std::cerr << "kclxx daemon check: only the keys were judged, not their values: "
              << printable(why_not) << std::endl;
  }
  const bool has_failed = errors > 0 || (is_strict && (warnings > 0 || !why_not.empty()));
  return static_cast<int>(has_failed ? command_status::finding : command_status::ok);
}

void add_fetch(CLI::App& daemon, invocation& run) {
  CLI::App& command = add_command(daemon,
                                  {"fetch",
                                   "Downloads the daemon's jars with Maven into a cache, verifies "
                                   "their checksums, compiles\n"
                                   "kclxx's own classes where there is a JDK, and prints their "
                                   "folder. What the cache has is\n"
                                   "not fetched again.",
                                   "kclxx daemon fetch --kcl 2"},
                                  child_use::none, run);
  struct request {
    kcl_choice kcl;
    std::string cache;
  };
  auto wanted = std::make_shared<request>();
  add_kcl_option(command, wanted->kcl);
  add_option(command, "DIR", "--cache", wanted->cache,
             "The cache's folder  [$XDG_CACHE_HOME/kclxx, or ~/.cache/kclxx]");
  command.callback(
      [wanted] { std::cout << fetch_jars(wanted->cache, wanted->kcl).string() << std::endl; });
}

void add_check(CLI::App& daemon, invocation& run) {
  CLI::App& command =
      add_command(daemon,
                  {"check",
                   "Lists the problems of a properties file: where, why it matters, and the fix.\n"
                   "Exit status 0: no errors, 1: errors; with --strict, also for warnings, and "
                   "when the values\n"
                   "could not be judged.",
                   "kclxx daemon check aws.properties --strict"},
                  child_use::none, run);
  auto options = std::make_shared<launch_options>();
  auto is_strict = std::make_shared<bool>(false);
  add_common_options(command, *options);
  command.add_flag(
      "--without-program", options->is_without_program,
      "The program that executableName names is not on this machine: do not look for it");
  command.add_flag("--strict", *is_strict,
                   "Exit status 1 also for warnings, and when not all was judged");
  command.callback(
      [options, is_strict, &run] { run.status = list_diagnostics(*options, *is_strict); });
}

}  // namespace

void add_daemon_command(CLI::App& app, invocation& run) {
  CLI::App& daemon = *app.add_subcommand("daemon", "Fetches, checks and starts the Java daemon.");
  daemon.require_subcommand(1);
  daemon.footer("kclxx daemon COMMAND --help has an example of each.");
  add_fetch(daemon, run);
  add_check(daemon, run);
  add_launch(daemon,
             {"run",
              "Becomes the daemon, with a worker for each FILE: the process stays the same, so "
              "signals reach it directly.\n"
              "Arguments after -- are options of Java, and take precedence over those that are "
              "chosen.",
              "kclxx daemon run orders.properties events.properties --heap 512m -- -XX:+UseG1GC"},
             run_daemon, run);
  add_launch(daemon,
             {"print-command", "Prints a command that starts the daemon, for sh.",
              "kclxx daemon print-command aws.properties --heap 512m > start-daemon"},
             print_daemon_command, run);
}

}  // namespace kclxx::host

// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include <kclxx/run.hpp>
#include <kclxx/serve.hpp>

#include "io/signals.hpp"
#include "io/stdio_guard.hpp"
#include "runtime/logger.hpp"
#include "runtime/shard_runtime.hpp"

namespace kclxx {

namespace {

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

void log(const run_options& options, log_level level, const std::string& text) {
  const log_entry entry{level, {}, text};
  try {
    if (options.log) return options.log(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): it goes to stderr, as without a function
  }
  runtime::log_to_stderr(entry);
}

exit_status serve(runtime::shard_runtime::configuration with, processor_factory make_processor,
                  const run_options& options) {
  try {
    const auto shard = std::make_shared<runtime::shard_runtime>(std::move(with),
                                                                std::move(make_processor), options);
    return shard->serve();
  } catch (const std::exception& error) {
    log(options, log_level::error, std::string("cannot serve the daemon: ") + error.what());
    return exit_status::start_failed;
  }
}

}  // namespace

exit_status serve(const transport& over, processor_factory make_processor,
                  const run_options& options) {
  shard_context::fields names;
  names.stream_name = over.stream_name;
  names.application_name = over.application_name;
  names.worker_id = over.worker_id;
  return serve({over.input, over.output, io::is_file(over.input), std::move(names), nullptr},
               std::move(make_processor), options);
}

int run(processor_factory make_processor, const run_options& options) {
  static std::atomic<bool> has_run = false;
  std::optional<io::stdio_guard> stdio;
  try {
    if (has_run.exchange(true)) throw std::logic_error("run was called a second time");
    stdio.emplace();
    if (stdio->input_is_terminal()) {
      log(options, log_level::info, "stdin is a terminal: type a daemon's lines; Ctrl-D ends it");
    } else {
      io::outlive_signals();
    }
  } catch (const std::exception& error) {
    log(options, log_level::error, std::string("cannot serve the daemon: ") + error.what());
    return static_cast<int>(exit_status::start_failed);
  }
  shard_context::fields names;
  names.stream_name = environment("KCLXX_STREAM_NAME");
  names.application_name = environment("KCLXX_APPLICATION_NAME");
  names.worker_id = environment("KCLXX_WORKER_ID");
  return static_cast<int>(
      serve({stdio->input(), stdio->output(), stdio->input_is_file(), std::move(names),
             [](exit_status status) { std::_Exit(static_cast<int>(status)); }},
            std::move(make_processor), options));
}

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/log.hpp>

#include "base/environment.hpp"

namespace kclxx::observability {

using date = std::chrono::system_clock::time_point;

/// A whole line, with its newline: "kclxx shardId-000000000003 warning: ...".
std::string text_line(const log_entry& entry);
std::string json_line(const log_entry& entry, date time);

/// Reads the value of KCLXX_LOG into the options. Returns what is wrong with it, or an empty text.
std::string read_log_variable(std::string_view value, log_options& options);

/// The options with the values of the environment. A bad value changes nothing, and is described in
/// `problems`.
log_options with_environment(log_options options, const detail::environment& variables,
                             std::vector<std::string>& problems);

/// Writes messages in the form and to the file of the options.
/// Thread safety: all functions from any thread.
class log_output {
 public:
  log_output(log_options options, int descriptor);
  void write(const log_entry& entry) const noexcept;

 private:
  log_options options_;
  int descriptor_;
  mutable std::atomic<bool> has_reported_ = false;  // that the file cannot be written
};

}  // namespace kclxx::observability

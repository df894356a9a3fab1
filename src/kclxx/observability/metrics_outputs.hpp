// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <kclxx/observer.hpp>
#include <kclxx/run_options.hpp>

#include "io/task_thread.hpp"

namespace kclxx::observability {

/// The built-in outputs of one session: the text file, the summary and the CloudWatch line, which a
/// thread of its own writes.
///
/// Thread safety: all functions from any thread.
class metrics_outputs {
 public:
  using log = std::function<void(log_level, const std::string&)>;

  [[nodiscard]] static bool is_any_on(const metrics_options& options) noexcept;

  using text = std::function<void(std::string)>;

  /// `write_log`, and `write_text` for CloudWatch's line, are called on the thread.
  /// Errors: std::system_error when the thread cannot be started.
  metrics_outputs(const metrics_options& options, log write_log, text write_text = {});
  /// Does not wait.
  ~metrics_outputs();
  metrics_outputs(const metrics_outputs&) = delete;
  metrics_outputs& operator=(const metrics_outputs&) = delete;

  void record(const observer::event_source& source, const observer::shard_event& event);
  /// Writes everything a last time. False when a file system did not let it end in time.
  bool finish(std::chrono::steady_clock::time_point deadline);

 private:
  class state;
  std::shared_ptr<state> state_;
  io::task_thread thread_;
};

}  // namespace kclxx::observability

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <kclxx/observer.hpp>
#include <kclxx/run_options.hpp>

#include "base/environment.hpp"
#include "observability/metrics_outputs.hpp"
#include "observability/observer_queue.hpp"

namespace kclxx::observability {

/// Everything that watches one session: the built-in outputs, and the program's observers.
///
/// Thread safety: all functions from any thread.
class observation {
 public:
  struct log {
    std::function<void(log_level, const std::string&)> write;
    std::function<void(std::string)> write_text;  ///< for CloudWatch's line
    std::function<void(const std::exception_ptr&)> observer_threw;
  };

  /// Null when nothing watches. The logs are called on threads of the observation's own.
  /// Errors: std::system_error when a thread cannot be started.
  static std::unique_ptr<observation> make(const run_options& options, observer::shard_names names,
                                           log output);

  void name_shard(const std::string& shard_id);
  /// Blocking: no.
  void observe(observer::shard_event&& event) noexcept;
  /// Delivers and writes what is left. False when an observer or a file system took too long.
  bool finish(std::chrono::steady_clock::time_point deadline);

 private:
  observation(const run_options& options, observer::shard_names names, log output);

  std::mutex mutex_;
  std::shared_ptr<const observer::shard_names> names_;
  std::vector<std::shared_ptr<observer>> direct_;
  std::optional<metrics_outputs> outputs_;
  std::optional<observer_queue> queue_;
};

/// As with_environment of log_options.
metrics_options with_environment(metrics_options options, const detail::environment& variables,
                                 std::vector<std::string>& problems);

}  // namespace kclxx::observability

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kclxx/observer.hpp>
#include <kclxx/run_options.hpp>

#include "base/environment.hpp"
#include "io/task_thread.hpp"
#include "observability/metrics_outputs.hpp"

namespace kclxx::observability {

/// Everything that watches a session: the built-in outputs, and the program's observers. A thread
/// of its own writes the outputs and calls the observers, so that none holds up the dialogue.
/// Events wait for the observers in a queue; events beyond its capacity are dropped and counted.
/// Waking a thread for each event would cost more than the event, so events are delivered in
/// groups.
///
/// Thread safety: all functions from any thread.
class observation {
 public:
  static constexpr std::size_t capacity = 65'536;
  static constexpr std::chrono::milliseconds longest_delay{100};

  struct log {
    metrics_outputs::log write;
    metrics_outputs::text write_text;                               ///< for CloudWatch's line
    std::function<void(const std::exception_ptr&)> observer_threw;  ///< the first exception
  };

  /// Null when nothing watches. The functions of `output` are called on the thread.
  /// Errors: std::system_error when the thread cannot be started.
  static std::unique_ptr<observation> make(const run_options& options, observer::shard_names names,
                                           log output);
  /// Does not wait: events that were not delivered are dropped.
  ~observation();
  observation(const observation&) = delete;
  observation& operator=(const observation&) = delete;

  void name_shard(const std::string& shard_id);
  /// Blocking: no.
  void observe(observer::shard_event&& event) noexcept;
  /// Delivers the events that wait, and writes the outputs a last time, even when an observer takes
  /// too long. False when an observer or a file system took too long.
  bool finish(std::chrono::steady_clock::time_point deadline);

 private:
  class state;
  explicit observation(std::shared_ptr<state> shared);

  std::shared_ptr<state> state_;
  io::task_thread thread_;
};

/// The options with the values of the environment. A bad value changes nothing, and is described in
/// `problems`.
metrics_options with_environment(metrics_options options, const detail::environment& variables,
                                 std::vector<std::string>& problems);

}  // namespace kclxx::observability

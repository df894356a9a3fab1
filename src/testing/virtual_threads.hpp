// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service.hpp>

#include "testing/idle_time.hpp"
#include "testing/usage.hpp"

namespace kclxx::testing {

/// What has threads of its own in production: pools, checkpoint handlers, observers, the log and
/// stop callbacks. In the kit the test's thread runs all but the last.
class virtual_threads : public std::enable_shared_from_this<virtual_threads> {
 public:
  explicit virtual_threads(std::shared_ptr<usage> usage) : usage_(std::move(usage)) {}
  virtual_threads(const virtual_threads&) = delete;
  virtual_threads& operator=(const virtual_threads&) = delete;
  ~virtual_threads() { join_stop(); }

  /// Without effect after end().
  void post(std::function<void()> task);
  /// Runs tasks, and what executors have to do, until nothing is left. One that waits may run
  /// others. Ends early when tasks start each other without end. False when there was nothing.
  bool run(idle_time& idle);
  /// Drops what has not run.
  void end();

  void adopt_executor(detail::virtual_executor& executor) { executors_.push_back(&executor); }
  void release_executor(detail::virtual_executor& executor) noexcept {
    std::erase(executors_, &executor);
  }
  [[nodiscard]] bool runs_executors() const noexcept { return !executors_.empty(); }
  /// Of the executors.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> next_timer() const;

  /// Its functions are tasks.
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_pool();

  /// On a thread of its own, as in production: on the callbacks' thread a stop callback could wait
  /// for what that callback holds. When this returns it has run, unless it waits so, or takes
  /// longer than 100 ms of real time.
  void request_stop(std::stop_source source);
  /// Once the callback has returned.
  void join_stop();
  /// What a stop callback asks for is too late; an exception there would end the test's process.
  [[nodiscard]] static bool is_stop_thread() noexcept;

 private:
  class pool;
  [[nodiscard]] bool run_one();

  std::shared_ptr<usage> usage_;
  std::deque<std::function<void()>> tasks_;
  std::vector<detail::virtual_executor*> executors_;
  bool has_ended_ = false;
  std::thread stop_thread_;
};

}  // namespace kclxx::testing

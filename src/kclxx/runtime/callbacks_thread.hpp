// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/shard_context.hpp>

#include "driver/shard_timers.hpp"
#include "io/forked_copy.hpp"
#include "runtime/synchronized_session.hpp"

namespace kclxx::runtime {

class input_turns;

/// Runs the user's callbacks and timers, one at a time, and reads the daemon's lines between them
/// while it is its turn.
class callbacks_thread {
 public:
  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;
  using timer_id = driver::shard_timers::timer_id;

  callbacks_thread(synchronized_session& session, input_turns& input)
      : session_(session), input_(input) {}

  /// Runs until the session is over. Errors: std::exception when there is no memory for a line or
  /// no descriptor for a poll; it can be called again then.
  void run(const std::shared_ptr<detail::shard_service>& service,
           const shard_context::fields& names);

  // Under the lock, from any thread.
  void call(session::call what);
  /// The session is over: what was not begun is not run.
  void end();
  timer_id start_timer(time_point due, std::chrono::milliseconds period,
                       std::function<void()> function);
  void wake() { has_work_.notify_one(); }

  /// In a callback or a timer.
  [[nodiscard]] bool is_in_user_code() const noexcept { return is_in_user_code_; }
  [[nodiscard]] time_point user_code_began() const noexcept { return user_code_began_; }
  /// In user code, or about to run a callback.
  [[nodiscard]] bool has_work() const noexcept { return call_ || is_in_user_code_; }
  [[nodiscard]] bool is_this_thread() const { return std::this_thread::get_id() == thread_; }
  [[nodiscard]] bool is_this_thread_in_timer() const { return is_in_timer_ && is_this_thread(); }
  /// A timer may run while the next batch is delivered already.
  [[nodiscard]] bool is_this_thread_in_callback() const {
    return is_this_thread() && !is_in_timer_;
  }

 private:
  void run_callback(std::unique_lock<std::mutex>& lock,
                    const std::shared_ptr<detail::shard_service>& service,
                    const shard_context::fields& names);
  void run_timer(std::unique_lock<std::mutex>& lock, driver::shard_timers::function timer);
  void run_without_thread(std::unique_lock<std::mutex>& lock);
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void begin_user_code();

  synchronized_session& session_;
  input_turns& input_;
  const io::forked_copy forked_;
  std::condition_variable has_work_;
  std::optional<session::call> call_;
  std::thread::id thread_;
  time_point user_code_began_{};
  bool is_in_user_code_ = false;
  bool is_in_timer_ = false;    // or other user code between two callbacks
  bool is_timers_turn_ = true;  // or a timer that is always due would let nothing else in
};

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_context.hpp>

#include "driver/session_driver.hpp"
#include "driver/shard_timers.hpp"
#include "io/copy_guard.hpp"
#include "io/lines.hpp"
#include "io/process_identity.hpp"
#include "io/reactor.hpp"
#include "observability/observation.hpp"
#include "runtime/line_input.hpp"
#include "runtime/user_tasks.hpp"

namespace kclxx::runtime {

/// The processor's destructor has this long at least: run_options::grace_time.
inline constexpr std::chrono::milliseconds least_teardown{500};

/// The host of a shard's session in real time: it has the session_driver, guards it by a lock, and
/// is the service of its checkpointers.
///
/// Two threads serve it (shard_host_threads in run.cpp). The callbacks' thread runs the user's
/// callbacks and timers, one at a time. The loop keeps time and never runs user code, so that the
/// end of the input is noticed and the session leaves in time whatever user code does. The sessions
/// of a resident share a loop. Either thread reads the daemon's lines (see reader). Further user
/// code has threads of its own, and so have the lines of the log (user_tasks).
///
/// While a thread has the lock, it waits for nobody and runs no user code. Without memory, threads
/// or descriptors the process ends (docs/architecture.md).
/// Thread safety: all functions from any thread, except where a group says otherwise.
/// Lifetime: checkpointers keep it alive. After run() it calls only the handlers of late calls of
/// async_checkpoint.
class shard_host final : public detail::shard_service,
                         public std::enable_shared_from_this<shard_host>,
                         private driver::host {
 public:
  using time_point = clock::time_point;
  struct configuration {
    int input;
    int output;
    int log;                      // for the lines of the log, without a run_options::log
    shard_context::fields names;  // of stream, application and worker
    std::optional<io::process_identity> daemon{};
    /// Ends the process, when the session cannot end since user code does not return. Empty: see
    /// shard_host_threads::serve() in run.cpp.
    std::function<void(exit_status)> leave_process{};
    /// The loop of all sessions of the process, in place of a thread with a loop of its own.
    io::event_loop* shared_loop = nullptr;
  };
  /// Called on the loop when user code has not returned in time. `reason` is for the log; null when
  /// the log has it.
  using stuck_function = std::function<void(const char* reason)>;

  /// Errors: std::exception when a descriptor or a thread cannot be had.
  shard_host(configuration settings, stuck_function on_stuck, processor_factory make_processor,
             const run_options& options);

  /// To be called before run(), so that a shard is refused if there is no thread for observers.
  /// Errors: std::system_error.
  void start_observation();
  /// Serves the session on the callbacks' thread, until user code has returned for good.
  void run() noexcept;
  [[nodiscard]] std::optional<exit_status> status() const;
  [[nodiscard]] std::chrono::milliseconds grace_time() const {
    return driver_.options().grace_time;
  }
  /// Ends the session as the end of the input does, though the input may be open. Not after run().
  void end_input() noexcept;

  // For a loop of its own.
  void run_loop() { reactor_.run(); }
  void stop_loop() { reactor_.stop(); }
  /// From now on the loop leaves the descriptors alone. To be called on the loop's thread, or after
  /// run_loop().
  void leave_loop() { reactor_.leave_loop(); }

  // After run(), or when user code is stuck.
  /// Waits a moment until the last lines for the daemon are written. Waits for the lines of the log
  /// as long as they are read, until the grace time is over. Lines that nobody has taken by that
  /// time are lost.
  bool drain_lines();
  /// Logs why, and waits a moment until what user code has logged is written.
  void drain_stuck(const char* reason);
  /// From now on no user code beside the callbacks runs, and no line is written.
  void abandon();
  void abandon_lines() { tasks_.lines().abandon(); }

  // shard_service
  void async_checkpoint(const std::optional<sequence_position>& position,
                        checkpoint_handler handler) noexcept override;
  std::error_code checkpoint(const std::optional<sequence_position>& position,
                             const std::optional<time_point>& deadline) noexcept override;
  [[nodiscard]] time_point now() const override { return clock::now(); }
  bool sleep_until(time_point deadline) override;
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override;
  void cancel_timer(timer_id timer) override;
  void wait_until_notified(time_point deadline) override {
    notification_.wait_until(deadline, tasks_.stop_token());
  }
  void notify() override { notification_.notify(); }
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_thread_pool(std::size_t threads) override;
  void fail(std::exception_ptr thrown) override;
  void request_worker_stop() override;
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>& position) override;
  void observe(observer::shard_event event) noexcept override;
  [[nodiscard]] bool is_observed() const noexcept override { return observation_ != nullptr; }

 private:
  /// The timers of the loop. The first of them are session::timer's.
  enum loop_timer : std::size_t {
    idle_timer = session::timer_count,  // memory for large lines may not be needed any more
    watch_timer,                        // user code may have lasted callback_patience
    end_timer,                          // the input may have ended behind a line that waits
    output_timer,                       // lines that the daemon has not taken are written again
    stuck_timer,
    teardown_timer,
    loop_timer_count
  };
  /// The thread that reads the daemon's lines. In lockstep the callbacks' thread has nothing to do
  /// between two callbacks and while it waits for an answer, so it reads: no batch costs a switch
  /// between threads. It alone reads a plain file, which a loop cannot watch.
  ///
  /// callbacks - idle, or waits in checkpoint() -> callbacks_reading - input was read -> callbacks
  ///   +- user code lasts 5 ms -> loop - user code does not last -> callbacks
  enum class reader {
    callbacks,          ///< the callbacks' thread, as soon as it has nothing to do
    callbacks_reading,  ///< the callbacks' thread, right now
    loop,               ///< the loop: user code lasts
  };
  /// What the callbacks' thread does.
  enum class user_code {
    none,
    callback,
    between,  ///< a timer, or further user code between two callbacks
  };
  using session_lock = std::unique_lock<std::mutex>;

  // On the callbacks' thread. Functions with a session_lock release it while user code runs.
  void run_callbacks();
  template <class Function>
  void run_user_code(session_lock& lock, user_code running, Function function);
  void run_callback(session_lock& lock);
  void run_timer(session_lock& lock, driver::shard_timers::function timer);
  void drop(session_lock& lock, std::exception_ptr& thrown);
  void wait_for_work(session_lock& lock);
  void finish_user_code();
  void finish_observation(time_point deadline);
  void read(session_lock& lock, const std::optional<time_point>& deadline);
  void await_input(const std::optional<time_point>& deadline);
  void await_answer(session_lock& lock, const std::optional<time_point>& deadline);

  // On the loop, without the lock.
  void on_readable();
  void on_timer(std::size_t timer);
  void on_idle();
  void on_watch();
  void on_line_waits();
  void on_output();
  void on_end(std::size_t timer);

  // On the thread that reads.
  [[nodiscard]] bool may_read() const;
  bool hand_over_lines(session_lock& lock);
  void continue_reading();

  // With the lock held: driver::host, and more.
  std::error_code write(std::string_view lines) override;
  void arm(session::timer timer, std::chrono::milliseconds delay) override;
  void call(session::call call) override;
  void end_timers() override;
  void wake(session::waiter_id waiter, std::error_code result) override;
  void left(exit_status status) override;
  void write_log(log_level level, std::string text,
                 const std::optional<sequence_position>& position) override;
  void log_lease(std::string text) override {
    write_log(log_level::info, std::move(text), std::nullopt);
  }
  void request_stop() override;
  void run_handler(checkpoint_handler handler, std::error_code result) override;
  void let_loop_read();
  void watch();
  void watch_for_end();
  void wake_callbacks_thread();
  [[nodiscard]] bool is_callbacks_thread() const;
  [[nodiscard]] bool is_in_callback() const;
  [[nodiscard]] std::chrono::milliseconds user_code_time() const;

  void user_code_threw(const std::string& source, const std::exception_ptr& thrown) noexcept;

  const io::copy_guard copies_;
  // Set before the threads start, and never changed.
  configuration settings_;
  const stuck_function on_stuck_;
  std::unique_ptr<observability::observation> observation_;  // null without observers
  // These synchronize themselves.
  user_tasks tasks_;
  notification notification_;

  mutable std::mutex mutex_;
  // The mutex guards the members down to grace_end_. driver_.run_callback and the processor are the
  // exception: they belong to the callbacks' thread.
  driver::session_driver driver_;
  driver::shard_timers timers_;
  io::line_output output_;  // no line is read while it keeps lines: the daemon is in lockstep
  std::unordered_map<session::waiter_id, std::optional<std::error_code>> outcomes_;
  std::condition_variable answered_;   // calls of checkpoint() wait for it
  std::condition_variable has_work_;   // the callbacks' thread waits for it
  std::optional<session::call> call_;  // the callbacks' thread takes it
  std::string shard_id_;
  std::thread::id callbacks_thread_;
  user_code user_code_ = user_code::none;
  time_point user_code_began_{};
  reader reader_ = reader::callbacks;
  bool is_loop_waiting_ = false;  // the loop reads again as soon as it may
  bool is_watched_ = false;       // watch_timer is armed
  bool is_end_watched_ = false;   // end_timer is armed
  bool has_asked_to_stop_ = false;
  bool is_user_code_finished_ = false;  // except for the processor's destructor
  /// Timers and callbacks alternate, so that a timer that is always due does not starve callbacks.
  bool is_timers_turn_ = true;
  std::optional<time_point> grace_end_;

  // Belongs to the thread that reads: reader_ says which that is, and changes with the lock held.
  line_input input_;

  // These synchronize themselves.
  io::input_poll poll_;
  io::reactor reactor_;
};

}  // namespace kclxx::runtime

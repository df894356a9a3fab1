// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>

#include "base/notification.hpp"
#include "io/reactor.hpp"
#include "runtime/callbacks_thread.hpp"
#include "runtime/input_turns.hpp"
#include "runtime/synchronized_session.hpp"

namespace kclxx::runtime {

/// One shard in real time: a session_driver's host, the service of its checkpointers, and the
/// session's end.
///
/// The callbacks' thread runs the user's callbacks and timers. The protocol thread runs the event
/// loop: it keeps time and never runs user code, so that whatever user code does, the end of the
/// input is noticed and the session leaves in time. Other user code has threads of its own
/// and so has the log on stderr (user_tasks). The sessions of a resident have one protocol thread
/// in common.
///
/// Thread safety: all functions from any thread. Lifetime: checkpointers keep it alive; once it has
/// left it calls nothing.
class shard_runtime final : public detail::shard_service,
                            public std::enable_shared_from_this<shard_runtime>,
                            private driver::host {
 public:
  using time_point = clock::time_point;
  struct configuration {
    int input;
    int output;
    int log;  // for lines, where there is no run_options::log
    bool input_is_file;
    shard_context::fields names;  // of stream, application and worker
    /// What a session does that cannot end since user code does not return. Empty: serve() returns
    /// and abandons the thread.
    std::function<void(exit_status)> leave_process{};
    /// The loop of all sessions of the process, in place of a protocol thread of its own.
    io::event_loop* loop = nullptr;
    /// With a loop: user code does not return, hence neither does serve(). Nothing else of the
    /// session uses its descriptors any more. Called on any thread.
    std::function<void()> on_stuck{};
  };

  /// Errors: std::exception when a descriptor or a thread cannot be had.
  shard_runtime(configuration with, processor_factory make_processor, const run_options& options);

  /// Before serve(), so that a shard without a thread for it is refused.
  /// Errors: std::system_error when a thread cannot be had.
  void start_observation();
  /// Runs the session to its end; callbacks run on this thread when there is a leave_process or a
  /// loop, else on one of their own. Call it once.
  exit_status serve();
  /// On the loop's thread, once serve() has returned or the session is stuck.
  void leave_loop() { reactor_.leave_loop(); }
  /// As if the input had ended, though it may be open. Any thread, until serve() has returned.
  void end_input();

  // shard_service
  void async_checkpoint(const std::optional<sequence_position>& position,
                        checkpoint_handler handler) override;
  std::error_code checkpoint(const std::optional<sequence_position>& position,
                             const std::optional<time_point>& deadline) override;
  [[nodiscard]] time_point now() const override { return clock::now(); }
  bool sleep_until(time_point deadline) override;
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override;
  void cancel_timer(timer_id timer) override;
  void wait_until_notified(time_point deadline) override {
    notification_.wait_until(deadline, session_.tasks.stop_token());
  }
  void notify() override { notification_.notify(); }
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_thread_pool(std::size_t threads) override;
  void fail(std::exception_ptr thrown) override;
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>& position) override;
  void observe(shard_event what) noexcept override;
  [[nodiscard]] bool is_observed() const noexcept override {
    return session_.observation != nullptr;
  }

 private:
  // The first are session::timer's.
  enum : std::size_t {
    idle_timer = session::timer_count,
    teardown_timer,
    watch_timer,
    output_timer,
    all_timers
  };

  // driver::host: under the lock.
  std::error_code write(std::string_view lines) override;
  void arm(session::timer which, std::chrono::milliseconds after) override;
  void call(session::call what) override;
  void end_timers() override { session_.timers.end(); }
  void wake(session::waiter_id waiter, std::error_code result) override;
  void left(exit_status status) override;
  void write_log(log_level level, std::string text,
                 const std::optional<sequence_position>& position) override;
  void request_stop() override;
  void run_handler(checkpoint_handler handler, std::error_code result) override;

  void user_code_threw(const std::string& whose, const std::exception_ptr& thrown) noexcept;
  void run_callbacks();
  void finish_user_code();
  void wake_callbacks_thread();

  // The protocol thread.
  io::reactor::handlers handlers();
  void run_protocol_thread();
  void run_loop();
  void end_protocol_thread(std::thread& thread);
  void on_timer(std::size_t which);
  void on_output_timer();

  // The end.
  void leave_if_stuck();
  void leave_stuck(const char* why);
  void finish_stuck(const char* why);
  void cannot_continue(const std::string& why) noexcept;

  void finish_observation(time_point deadline);
  bool drain_lines();

  configuration with_;
  synchronized_session session_;
  input_turns input_;
  callbacks_thread callbacks_;
  detail::notification notification_;
  io::reactor reactor_;

  // Guarded by the session's mutex.
  std::optional<time_point> grace_end_;
  std::condition_variable is_done_;  // for serve()
  bool has_loop_ended_ = false;
  bool is_finished_ = false;
  bool is_leaving_stuck_ = false;
  bool is_stuck_ = false;
};

}  // namespace kclxx::runtime

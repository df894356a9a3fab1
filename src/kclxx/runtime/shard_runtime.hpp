// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <kclxx/processor_factory.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_service.hpp>

#include "base/notification.hpp"
#include "driver/session_driver.hpp"
#include "driver/shard_timers.hpp"
#include "io/input_poll.hpp"
#include "io/private_descriptors.hpp"
#include "io/reactor.hpp"
#include "runtime/line_input.hpp"
#include "runtime/task_thread.hpp"

namespace kclxx::runtime {

/// One shard in real time: a session_driver under a mutex, and its threads.
///
/// The callbacks' thread runs the user's callbacks and timers. The protocol thread runs the event
/// loop: it keeps time and never runs user code, so that whatever user code does, the end of the
/// input is noticed and the session leaves in time. Log functions and checkpoint handlers run on a
/// third thread, which is started when there is one; the stop token is stopped by one of its own.
///
/// In lockstep with a daemon the callbacks' thread has nothing else to do between two callbacks and
/// while it waits for an answer, so it reads the daemon's lines: no batch costs a hop between
/// threads. When user code lasts, or another thread waits for an answer, or the input is ahead of
/// the dialogue, the protocol thread takes reading over until the next call.
///
/// Thread safety: all functions from any thread. Lifetime: checkpointers keep it alive; once it has
/// left it calls nothing.
class shard_runtime final : public shard_service,
                            public std::enable_shared_from_this<shard_runtime>,
                            private driver::host,
                            private line_sink {
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
    std::function<void(exit_status)> leave_process;
  };

  /// Errors: std::exception when a descriptor or a thread cannot be had.
  shard_runtime(configuration with, processor_factory make_processor, const run_options& options);
  ~shard_runtime() override;

  /// Runs the session to its end; callbacks run on this thread when there is a leave_process, else
  /// on one of their own. Call it once.
  exit_status serve();
  /// As if the input had ended, though it may be open. Any thread, until serve() has returned.
  void end_input();

  // shard_service
  void submit(const std::optional<sequence_position>& position,
              checkpoint_handler handler) override;
  std::error_code wait(const std::optional<sequence_position>& position,
                       const std::optional<time_point>& deadline) override;
  [[nodiscard]] time_point now() const override { return clock::now(); }
  bool sleep_until(time_point deadline) override;
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override;
  void cancel_timer(timer_id timer) override;
  void wait_until_notified(time_point deadline) override {
    notification_.wait_until(deadline, stop_.get_token());
  }
  void notify() override { notification_.notify(); }
  [[nodiscard]] std::unique_ptr<thread_pool> make_thread_pool(std::size_t threads) override;
  void log(log_level level, const std::string& text) override;

 private:
  // The first are session::timer's.
  enum : std::size_t { idle_timer = session::timer_count, teardown_timer, watch_timer, all_timers };
  enum class read_outcome {
    lockstep,  ///< nothing lies after the last line
    ahead,     ///< something does
    ended,     ///< the end of input was delivered
  };
  /// Holds the lock for one event.
  class event;
  struct waiting_call {
    std::condition_variable answered;
    std::optional<std::error_code> result;
  };

  // driver::host: under the lock.
  std::error_code write(std::string_view lines) override;
  void arm(session::timer which, std::chrono::milliseconds after) override;
  void call(session::call what) override;
  void end_timers() override { timers_.end(); }
  void wake(session::waiter_id waiter, std::error_code result) override;
  void pause_reading(bool paused) override;
  void left(exit_status status) override;
  void write_log(log_level level, std::string text) override;
  void request_stop() override;
  void run_handler(checkpoint_handler handler, std::error_code result) override;

  // line_sink: without the lock, on the thread that reads.
  void on_line(std::variant<driver::line_decoder::decoded, driver::line_decoder::bad_line,
                            driver::line_decoder::blank>
                   line,
               bool has_replaced_utf8) override;
  void on_end_of_input(bool unfinished_line, int error) override;
  [[nodiscard]] bool is_full() const override;
  [[nodiscard]] bool is_over() const override;

  void post_log(const log_entry& entry);
  void handler_threw() noexcept;

  // The callbacks' thread.
  void run_callbacks();
  void run_callbacks_until_the_end();
  void run_callback(std::unique_lock<std::mutex>& lock);
  void run_timer(std::unique_lock<std::mutex>& lock, const driver::shard_timers::function& timer);
  void begin_user_code();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void leave_if_forked() const;
  [[nodiscard]] bool is_callbacks_thread() const {
    return std::this_thread::get_id() == callbacks_thread_;
  }
  /// A timer may run while the next batch is delivered already.
  [[nodiscard]] bool is_in_callback() const { return is_callbacks_thread() && !is_in_timer_; }

  // Who reads; with the lock held.
  void read(std::unique_lock<std::mutex>& lock, const std::optional<time_point>& deadline);
  read_outcome read_once(const std::optional<time_point>& deadline);
  void read_until_answered(std::unique_lock<std::mutex>& lock, const waiting_call& mine,
                           const std::optional<time_point>& deadline);
  void hand_reading_over();
  bool give_back_reading();
  void watch_user_code();
  void wake_reader();
  [[nodiscard]] bool is_lockstep_callback() const {
    return is_in_user_code_ && is_callbacks_thread_reading_ && is_callbacks_thread();
  }

  // The protocol thread.
  io::reactor::handlers handlers();
  void run_protocol_thread();
  void on_readable();
  void on_resumed();
  void after_reading();
  void on_timer(std::size_t which);
  void on_watch();
  void leave_if_stuck();
  void leave_stuck(const char* why);
  void fail(const std::string& why) noexcept;

  configuration with_;
  std::function<void(const log_entry&)> log_function_;
  const unsigned fork_count_ = io::fork_count();

  mutable std::mutex mutex_;
  driver::session_driver driver_;
  driver::shard_timers timers_;
  // User code that the present event leads to, when no thread can be had for it.
  std::vector<std::function<void()>> without_thread_;
  std::string shard_id_;
  std::optional<session::call> call_;
  std::unordered_map<session::waiter_id, waiting_call*> waiting_;
  std::optional<time_point> grace_end_;
  std::condition_variable has_work_;  // for the callbacks' thread
  std::condition_variable is_done_;   // for serve()
  std::thread::id callbacks_thread_;
  time_point user_code_began_{};
  bool is_in_user_code_ = false;  // on the callbacks' thread: a callback or a timer
  bool is_in_timer_ = false;
  bool is_callbacks_thread_reading_;  // when it has nothing else to do; else the protocol thread
  bool is_in_read_ = false;           // the callbacks' thread, right now
  bool is_watched_ = false;
  bool is_finished_ = false;
  bool is_stuck_ = false;

  std::stop_source stop_;
  detail::notification notification_;
  std::thread stop_thread_;
  task_thread tasks_;
  line_input input_;
  bool has_input_ended_ = false;  // belongs to whichever thread reads, as input_ does
  io::input_poll poll_;
  io::reactor reactor_;
};

}  // namespace kclxx::runtime

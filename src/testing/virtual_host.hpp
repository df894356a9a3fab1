// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_context.hpp>

#include "driver/session_driver.hpp"
#include "driver/shard_timers.hpp"
#include "testing/virtual_threads.hpp"

namespace kclxx::testing {

/// The host of a session in virtual time, which plays a child process. The test's thread runs its
/// callbacks.
///
/// Lifetime: checkpointers share it, and call nobody when it is killed.
/// Thread safety: none; virtual_threads let a single thread run at a time. A call on any further
/// thread has no effect, and is reported (usage).
class virtual_host final : public detail::shard_service,
                           private detail::virtual_scheduler,
                           public std::enable_shared_from_this<virtual_host>,
                           private driver::host {
 public:
  using time_point = virtual_clock::clock::time_point;

  /// Where the child reports to the daemon and to the test.
  class surroundings {
   public:
    virtual ~surroundings() = default;
    virtual void written(std::string_view line) = 0;  // without its newline
    virtual void log(const log_entry& entry) = 0;
    virtual void callback_begins(protocol::action_kind kind) = 0;
    virtual void waits_without_end() = 0;  // the child is about to be killed
    virtual void asks_worker_to_stop() = 0;
    virtual void daemon_ends() = 0;
    virtual void left(exit_status status) = 0;
  };
  struct configuration {
    processor_factory make_processor;
    run_options options;
    shard_context::fields names;  // of stream, application and worker
    std::uint32_t seed;
  };

  virtual_host(configuration settings, std::shared_ptr<virtual_clock> time,
               std::shared_ptr<usage> usage, std::shared_ptr<idle_time> idle, surroundings& around);

  /// A line from the daemon, which settle() reads.
  void receive(std::string line) { unread_.push_back(std::move(line)); }
  void end_input() { has_input_ended_ = true; }
  void end_daemon_at(time_point time) { daemon_end_ = time; }

  /// Reads all lines of the daemon, also its answers, which come in no time.
  void settle();
  [[nodiscard]] bool runs_executors() const noexcept { return threads_->runs_executors(); }
  /// Runs tasks; without any a timer that is due; without any the next callback. False when none of
  /// them is ready.
  bool run_user_code();
  [[nodiscard]] bool is_running_user_code() const noexcept {
    return place_ != place::outside || threads_->is_running();
  }
  /// To be called in user code: lets it take until this time.
  void pass(time_point until);

  /// When the passing of time makes something happen here.
  [[nodiscard]] std::optional<time_point> next_timer() const;
  /// Fires the timers of the session and of the daemon that are due. run_user_code fires the
  /// user's.
  void fire_timers();
  /// True when only a request of the processor can continue the dialogue.
  [[nodiscard]] bool awaits_completion() const noexcept {
    return driver_.awaits_completion() && !timers_.next_due() && !threads_->next_timer();
  }
  /// Ends user code whose process was killed, or ended with callback_stuck: in production user
  /// code ends with its process. Errors: process_ended.
  void leave_callback_of_the_dead() const;
  /// Throws std::logic_error. In user code the end of the kit's function reports it, too.
  [[noreturn]] void refuse(const std::string& reason);

  // The end of the process. After either function nothing is called, written or logged.
  /// Destroys the processor, as a process does that leaves.
  void finish();
  /// Plays kill -9: no destructor of the user's runs. If the process has ended, it calls finish().
  void kill();
  [[nodiscard]] bool is_gone() const noexcept { return is_gone_; }

  [[nodiscard]] const std::optional<exit_status>& status() const noexcept {
    return driver_.status();
  }
  [[nodiscard]] bool stop_requested() const noexcept { return is_gone_ || stop_.stop_requested(); }
  [[nodiscard]] record_processor* processor() noexcept { return driver_.processor().get(); }
  [[nodiscard]] const std::exception_ptr& thrown() const noexcept { return thrown_; }

  // shard_service
  void async_checkpoint(const std::optional<sequence_position>& position,
                        checkpoint_handler handler) override;
  std::error_code checkpoint(const std::optional<sequence_position>& position,
                             const std::optional<time_point>& deadline) override;
  [[nodiscard]] time_point now() const override { return clock_->now(); }
  [[nodiscard]] std::chrono::system_clock::time_point date() const override {
    return clock_->date();
  }
  bool sleep_until(time_point deadline) override;
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override;
  void cancel_timer(timer_id timer) override;
  void observe(observer::shard_event event) noexcept override;
  [[nodiscard]] bool is_observed() const noexcept override;
  void wait_until_notified(time_point deadline) override;
  void notify() override;
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_thread_pool(std::size_t threads) override;
  [[nodiscard]] detail::virtual_scheduler* scheduler() noexcept override { return this; }
  void fail(std::exception_ptr thrown) override;
  void request_worker_stop() override;
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>& position) override;

 private:
  class pool;
  /// What the callbacks' thread runs, which is the test's.
  enum class place { outside, callback, timer };
  using group = virtual_threads::group;

  // virtual_scheduler
  [[nodiscard]] std::uint32_t seed() const noexcept override { return seed_; }
  [[nodiscard]] std::shared_ptr<void> adopt(executor adopted) override;
  bool run_until(const std::function<bool()>& is_over) override;

  // driver::host
  std::error_code write(std::string_view lines) override;
  void arm(session::timer timer, std::chrono::milliseconds delay) override;
  void call(session::call call) override;
  void end_timers() override { timers_.end(); }
  void wake(session::waiter_id waiter, std::error_code result) override;
  void left(exit_status status) override;
  void write_log(log_level level, std::string text,
                 const std::optional<sequence_position>& position) override;
  void request_stop() override;
  void run_handler(checkpoint_handler handler, std::error_code result) override;

  [[nodiscard]] std::optional<time_point> next_library_timer() const;
  [[nodiscard]] bool is_in_callback() const noexcept {
    return place_ == place::callback && !threads_->is_caller();
  }
  void read(const std::string& line);
  void run_callback();
  void run_timer(const driver::shard_timers::function& timer);
  void user_code_threw(const char* source, const std::exception_ptr& thrown);
  void keep_if_fatal(const session::session::failure& failure, const std::exception_ptr& thrown);
  void set_names();
  void call_observers(const observer::event_source& source, const observer::shard_event& event);
  void end_user_code();
  enum class waited { to_end, in_vain };  // in vain: nothing can end the wait
  /// Time passes for user code, at most to the deadline.
  waited wait_until(time_point deadline, const std::function<bool()>& is_over);
  /// A wait of the callbacks' thread.
  waited pass_time(time_point deadline, const std::function<bool()>& is_over);
  /// Drops the functions of the group that have not begun, and waits for those that have.
  void join(const std::shared_ptr<group>& joined) noexcept;
  void leave_stuck();
  /// False on any thread but the test's and the kit's, where a call of a shard_service function has
  /// no effect. The kit's function reports it at its end (usage), unless a stop callback made it.
  /// `function`, a literal, begins the message.
  [[nodiscard]] bool is_on_own_thread(const char* function);
  /// False on a wrong thread, as is_on_own_thread, and in a killed process.
  /// Errors: those of leave_callback_of_the_dead().
  [[nodiscard]] bool may_report(const char* function);
  /// False in a killed process, and in a stop callback. Errors: std::logic_error on a wrong thread;
  /// those of leave_callback_of_the_dead().
  [[nodiscard]] bool may_request(const char* function);
  void require_progress();
  [[noreturn]] void end_without_progress();

  std::shared_ptr<virtual_clock> clock_;
  std::shared_ptr<usage> usage_;
  std::shared_ptr<idle_time> idle_;
  std::unique_ptr<virtual_threads> threads_ =
      std::make_unique<virtual_threads>(usage_, clock_, idle_);
  // Each of these groups has a thread in production.
  std::shared_ptr<group> handlers_ = threads_->add_group(1);
  std::shared_ptr<group> log_lines_ = threads_->add_group(1);
  std::shared_ptr<group> events_ = threads_->add_group(1);
  surroundings& around_;
  std::uint32_t seed_;
  shard_context::fields context_;
  driver::session_driver driver_;
  driver::line_decoder decoder_;
  driver::shard_timers timers_;
  std::deque<std::string> unread_;
  std::array<std::optional<time_point>, session::timer_count> session_timers_;
  std::optional<time_point> daemon_end_;
  std::optional<time_point> callback_lasts_at_;  // when the callback has lasted callback_patience
  std::optional<sequence_position> furthest_requested_;
  std::unordered_map<session::waiter_id, std::optional<std::error_code>> waiting_;
  std::optional<session::call> call_;
  std::string shard_id_;
  std::shared_ptr<const observer::shard_names> names_;  // for events
  bool has_observer_thrown_ = false;
  std::stop_source stop_;
  std::exception_ptr thrown_;
  place place_ = place::outside;
  bool is_timers_turn_ = true;              // timers and callbacks alternate, as in production
  std::optional<time_point> teardown_end_;  // the processor's destructor must return by this time
  bool is_notified_ = false;
  bool has_input_ended_ = false;
  bool is_gone_ = false;
};

}  // namespace kclxx::testing

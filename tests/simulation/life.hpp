// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service.hpp>
#include <kclxx/run.hpp>

#include "driver/session_driver.hpp"
#include "driver/shard_timers.hpp"
#include "simulation/daemon.hpp"
#include "simulation/processor.hpp"
#include "simulation/run.hpp"
#include "simulation/seed_runner.hpp"
#include "simulation/world.hpp"

namespace kclxx::simulation {

/// One child process under one daemon, from its start to its end: the session driver, of which it
/// is the host, the daemon, a random processor, the pipes between them, and a clock.
/// Every step is one event, chosen at random among those that could come next. A callback is an
/// event that takes more events until it returns. Knows the invariants about the dialogue.
///
/// Several lives may be under way at once: that of the lease's owner, and those of workers that
/// have lost it and do not know it. One that waits for others within its callback is suspended.
class life : private driver::host {
 public:
  /// Lets some life take a step, this one for instance, which is in its callback.
  using scheduler = std::function<void(const life&)>;

  life(world& world, random_source& random, bool with_faults, trace& log, scheduler next);

  void take_step();
  [[nodiscard]] bool is_over() const { return child_gone_ && daemon_.is_gone(); }
  [[nodiscard]] bool is_in_user_code() const { return is_in_user_code_; }
  [[nodiscard]] bool is_lease_lost() const { return daemon_.is_lease_lost(); }
  /// To be asked once it is over.
  void check_end();

  /// Of faults with states, over all lives of the process.
  static meetings& met();
  /// Steps taken, over all; the runner prints them.
  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  /// How long it lasted, by its clock.
  [[nodiscard]] std::chrono::nanoseconds time() const { return now_ - began; }

  // For its daemon.
  void write_to_child(std::string line) { to_child_.push_back(std::move(line)); }
  void close_child_input(bool unfinished_line);
  /// The child has left, or was killed.
  [[nodiscard]] bool is_child_gone() const { return child_gone_; }
  [[nodiscard]] bool has_child_succeeded() const { return driver_.status() == exit_status::ok; }
  /// A checkpoint reached the lease table.
  void persisted(const sequence_position& position);
  /// Counts a fault, with what else is true at this moment.
  void note(fault what) const;

  // For its processor.
  /// Lets something happen, a step of the callback for instance. Throws when the process is gone.
  void next_event();
  /// A waiting call of another thread begins, or gives up; false: it was completed before.
  void begin_wait(session::waiter_id id, const std::optional<sequence_position>& position);
  bool time_out(session::waiter_id id);
  [[nodiscard]] session::waiter_id new_waiter() { return driver_.next_waiter(); }
  /// So many of the shard's first records were sent by the daemon.
  [[nodiscard]] std::size_t sent() const { return daemon_.sent(); }

 private:
  enum class event {
    daemon_calls,
    daemon_dies,
    worker_stops,
    lease_is_stolen,
    store_refuses,
    child_reads,
    child_killed,
    daemon_reads,
    callback_begins,
    callback_steps,
    callback_lasts,
    thread_steps,
    handler_runs,
    session_timer_fires,
    shard_timer_fires,
  };
  struct choice {
    event what;
    unsigned weight;
  };
  class service;
  using optional_position = std::optional<sequence_position>;

  void child_reads();
  void read_line(const std::string& text);
  void run_callback();
  void run_one_handler();
  void fire_session_timer();
  void fire_shard_timer();
  void child_is_gone();
  [[nodiscard]] std::size_t next_timer() const;
  /// Feeds the driver one event.
  template <class Event>
  void feed(Event one) {
    if (std::exchange(is_in_driver_, true)) {
      throw violation("overlap: an event came within another");
    }
    one();
    is_in_driver_ = false;
  }
  void expect_alive(const char* what) const;

  // shard_service, for the processor.
  void async_checkpoint(const optional_position& position, checkpoint_handler handler);
  std::error_code checkpoint(const optional_position& position,
                             const std::optional<time_point>& deadline);
  template <class Predicate>
  bool wait_until(const std::optional<time_point>& deadline, Predicate is_over);

  // driver::host
  [[nodiscard]] time_point now() const override { return now_; }
  std::error_code write(std::string_view lines) override;
  void arm(session::timer which, std::chrono::milliseconds after) override;
  void call(session::call what) override;
  void end_timers() override { shard_timers_.end(); }
  void wake(session::waiter_id waiter, std::error_code result) override;
  void left(exit_status status) override;
  void write_log(log_level level, std::string text,
                 const std::optional<sequence_position>& position) override;
  void request_stop() override;
  void run_handler(checkpoint_handler handler, std::error_code result) override;
  void write_line(const std::string& line);

  void find_choices();
  void perform(event what);
  [[nodiscard]] bool leads_on(const choice& one) const;
  void check_stuck();

  world& world_;
  random_source& random_;
  bool with_faults_;
  trace& log_;
  scheduler next_;
  std::uint64_t steps_ = 0;
  daemon daemon_;

  std::deque<std::string> to_child_;
  bool input_ended_ = false;
  bool unfinished_line_ = false;
  bool child_has_seen_end_ = false;

  processor processor_;
  driver::batch_memory_pool memory_;
  driver::line_decoder decoder_;
  driver::session_driver driver_;
  driver::shard_timers shard_timers_;
  shard_context::fields context_;
  std::shared_ptr<detail::shard_service> service_;
  std::stop_source stop_;
  static constexpr time_point began{std::chrono::hours(1)};
  time_point now_ = began;
  std::array<std::optional<time_point>, session::timer_count> timers_;
  std::optional<session::call> call_;
  std::optional<protocol::action_kind> running_;  // the callback
  std::vector<choice> possible_;                  // reused between steps
  std::deque<std::pair<checkpoint_handler, std::error_code>> handlers_;
  std::optional<std::pair<session::waiter_id, std::optional<std::error_code>>> waiting_;
  std::optional<time_point> wait_ends_;
  std::optional<time_point> last_checkpoint_;
  bool is_in_user_code_ = false;  // a callback or a timer
  bool is_in_driver_ = false;
  bool is_failing_ = false;
  bool child_gone_ = false;
  bool was_killed_ = false;
  bool was_line_damaged_ = false;
  bool stop_fired_ = false;
  bool may_write_ = false;  // an action is open that the child has not answered
  int unanswered_ = 0;
};

}  // namespace kclxx::simulation

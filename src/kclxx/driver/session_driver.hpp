// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <kclxx/observer.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_context.hpp>

#include "driver/gap_detector.hpp"
#include "driver/line_decoder.hpp"
#include "driver/log_limiter.hpp"
#include "session/output.hpp"
#include "session/session.hpp"

namespace kclxx::driver {

class host;

/// Sends the host what happens in the dialogue, for observers. Does nothing when there are none.
///
/// Thread safety: none; belongs to a session_driver.
class dialogue_events {
 public:
  explicit dialogue_events(host& owner) : host_(owner) {}

  /// The event of a call that is about to be handed over, and moved away with that.
  [[nodiscard]] std::optional<observer::shard_event> event_of(const session::call& call) const;
  /// The call is handed over: sends its event.
  void on_call(std::optional<observer::shard_event> event, observer::callback_kind kind);
  void on_callback_ended(std::chrono::nanoseconds duration,
                         observer::callback_ended::outcome outcome, std::string error);
  void on_status(const std::optional<session::action_kind>& kind, const session::session& session);
  void on_checkpoint(const sequence_position& position, session::session& session);
  /// Sends the answer of the daemon, if the session has got it, or waits for none any more.
  void settle(session::session& session);
  void on_left(exit_status status, session::session& session);

 private:
  struct request {
    sequence_position position;
    session::time_point time;
  };

  void send_answer(session::session& session);

  host& host_;
  std::optional<observer::callback_kind> open_;
  std::optional<request> unanswered_;
};

/// The user's processor: made by initialize, called by what follows.
///
/// Thread safety: none; belongs to the callbacks' thread.
class user_processor {
 public:
  explicit user_processor(processor_factory make_processor)
      : make_processor_(std::move(make_processor)) {}

  /// Runs a callback. `names` are the context's fields, except for the shard and its start.
  /// Errors: what the user's code throws; std::logic_error when the factory made nothing.
  void run(const session::call& call, const shard_context::fields& names,
           const std::shared_ptr<detail::shard_service>& service);

  /// The mode of the processor; automatic before initialize.
  [[nodiscard]] checkpoint_mode mode() const noexcept { return mode_; }
  /// Null before initialize and after destroy().
  [[nodiscard]] record_processor* get() const noexcept { return processor_.get(); }
  void destroy() {
    processor_.reset();
    context_.reset();
  }
  /// Gives the processor and its context away, undestroyed.
  std::pair<std::unique_ptr<record_processor>, std::unique_ptr<shard_context>> abandon() {
    return {std::move(processor_), std::move(context_)};
  }

 private:
  processor_factory make_processor_;
  std::unique_ptr<shard_context> context_;  // outlives the processor
  std::unique_ptr<record_processor> processor_;
  checkpoint_mode mode_ = checkpoint_mode::automatic;
};

/// What a session_driver runs in: real time (runtime::shard_host), the virtual time of the test kit
/// (testing::virtual_host), or the simulation. The functions are called inside the driver's events,
/// and must not call back into the driver.
class host {
 public:
  using time_point = session::time_point;

  virtual ~host() = default;

  [[nodiscard]] virtual time_point now() const = 0;
  [[nodiscard]] virtual std::chrono::system_clock::time_point date() const {
    return std::chrono::system_clock::now();
  }
  /// Writes whole lines to the daemon. Returns what went wrong.
  virtual std::error_code write(std::string_view lines) = 0;
  /// Calls on_timer after this time. Arming a timer again replaces it.
  virtual void arm(session::timer timer, std::chrono::milliseconds delay) = 0;
  /// Hands a call over to the callbacks' thread, which runs it with run_callback.
  virtual void call(session::call call) = 0;
  /// The shard is another worker's: no timer of the user's fires any more.
  virtual void end_timers() = 0;
  /// A call of checkpoint() that waits has its outcome.
  virtual void wake(session::waiter_id waiter, std::error_code result) = 0;
  /// The session is over.
  virtual void left(exit_status status) = 0;

  /// An event for the observers, which are not called inside the driver's event.
  virtual void observe(observer::shard_event) noexcept {}
  [[nodiscard]] virtual bool is_observed() const noexcept { return false; }

  // User code, to be run later, outside of the driver's event.
  virtual void write_log(log_level level, std::string text,
                         const std::optional<sequence_position>& position) = 0;
  /// The lease began or ended: a line for whoever looks after the worker. The test kit leaves it
  /// out of its log, which has what a test should look at.
  virtual void log_lease(std::string) {}
  virtual void request_stop() = 0;
  virtual void run_handler(checkpoint_handler handler, std::error_code result) = 0;
};

/// The source of a failure that is not of a callback.
inline constexpr const char* between_callbacks = "user code between callbacks";
/// The failure of user code that has thrown; `source` says which code. Calls what(), which is user
/// code: hold no lock.
session::session::failure describe(const std::string& source, const std::exception_ptr& thrown);

/// The message about an observer's exception, which is logged once.
std::string observer_threw(const std::exception_ptr& thrown);

/// Drives a session: feeds it with the events of its host, and carries out what it decides. Lines
/// are written, calls handed over, waiters woken. It holds no lock and starts no thread.
///
/// Thread safety: none. The host calls one function at a time, except for run_callback, which
/// belongs to the callbacks' thread and may run beside any other function.
class session_driver {
 public:
  session_driver(processor_factory make_processor, const run_options& options, std::uint32_t seed,
                 host& owner);

  /// The options as they are acted upon: durations that cannot overflow.
  [[nodiscard]] const run_options& options() const noexcept { return options_; }

  // From the daemon.
  /// A line has come. The daemon is in lockstep, and sends no line early. A transcript that is
  /// played from a file or through a pipe does. So an early line waits for its turn: an action for
  /// the status of the action before it, an answer for its checkpoint. The end of the input waits,
  /// too, and from then on each callback has the grace time. Precondition: no line waits.
  void on_line(line_decoder::outcome&& line);
  [[nodiscard]] bool has_early_line() const noexcept { return early_line_.has_value(); }
  /// `unfinished_line`: the input broke off in the middle of a line. `error` is errno's, or 0.
  void on_end_of_input(bool unfinished_line, int error = 0);
  /// The host has found that the input has ended, though lines before the end were not read yet,
  /// since one waits. From now on each callback has the grace time.
  void on_end_behind_line();

  void on_timer(session::timer timer);
  /// The open callback has lasted session::callback_patience.
  void on_callback_lasts();
  /// Lines that the host has kept cannot be written.
  void on_output_broken(std::error_code error);

  // The callbacks' thread.
  /// How a callback ended.
  struct callback_result {
    std::optional<session::session::failure> failure{};
    bool keeps_batch = false;                            // user code still has a handle on it
    std::optional<std::chrono::nanoseconds> duration{};  // for observers
    std::exception_ptr thrown{};                         // when it failed
  };
  /// False when calls ended after this one was handed over, by a timer that gave the shard up for
  /// instance (P67).
  [[nodiscard]] bool is_due(const session::call& call) const noexcept {
    return !have_calls_ended_ || call.kind == protocol::action_kind::lease_lost;
  }
  /// Runs a callback if it is due; what it throws is in the result. The call is destroyed.
  callback_result run_callback(session::call call, const shard_context::fields& names,
                               const std::shared_ptr<detail::shard_service>& service);
  void on_callback_done(const callback_result& result);
  /// User code between two callbacks threw.
  void on_user_code_threw(const session::session::failure& thrown);
  [[nodiscard]] bool is_fatal(const session::session::failure& thrown) const noexcept {
    return session_.is_fatal(thrown);
  }
  [[nodiscard]] user_processor& processor() noexcept { return processor_; }

  // Checkpoints.
  [[nodiscard]] session::waiter_id next_waiter() noexcept { return next_waiter_++; }
  void on_checkpoint(session::waiter_id id, const std::optional<sequence_position>& position,
                     bool from_callback);
  /// The deadline of a waiting call has passed. False when the call was completed before.
  bool on_deadline(session::waiter_id id);
  /// Lines of user code and of the forms of processing are not limited: each parked record has one.
  void on_log(log_level level, const std::string& text,
              const std::optional<sequence_position>& position = std::nullopt) {
    host_.write_log(level, session::log_line(level, text).text, position);
  }
  void on_async_checkpoint(const std::optional<sequence_position>& position,
                           checkpoint_handler handler, bool from_callback);

  [[nodiscard]] const std::optional<exit_status>& status() const noexcept { return status_; }
  /// Whether an action of the daemon's has no status yet.
  [[nodiscard]] bool is_open() const noexcept { return session_.is_open(); }
  /// The checkpoint that is not answered; SHARD_END is the null checkpoint.
  [[nodiscard]] const std::optional<sequence_position>& unanswered() const noexcept {
    return session_.unanswered();
  }
  [[nodiscard]] bool awaits_completion() const noexcept { return session_.awaits_completion(); }

 private:
  template <class Event>
  void feed(Event event);
  template <class Event>
  void process(Event event);
  void fail(exit_status status, const std::string& reason);
  void carry_out();
  void hand_over(line_decoder::decoded&& line);
  void look_for_gap(const line_decoder::decoded& line);
  void log_lease_gained(const std::optional<sequence_position>& position);
  /// Logs it if the worker had the lease until now.
  void log_lease_ended(const std::string& reason);
  void take_early_line();
  void carry_out(session::output& output);
  void write();
  void log(log_level level, std::string text,
           const std::optional<sequence_position>& position = std::nullopt);
  /// Oddities that are logged once in a session, however often they come.
  enum class oddity {
    blank_line,
    invalid_utf8,
    unknown_time,
    kept_batch,
    unasked_answer,
    count,  ///< how many there are
  };
  void warn_once(oddity what, std::string text);
  void warn_of_oddities(const line_decoder::decoded& line);
  void notify(session::waiter_id waiter, std::error_code result);

  run_options options_;
  host& host_;
  session::session session_;
  user_processor processor_;
  dialogue_events events_;
  gap_detector gap_detector_;
  bool has_lease_ = false;  // the log has its beginning, and not its end
  log_limiter limiter_;
  session::outputs outputs_;  // of the present event; its memory is reused
  std::string lines_;         // for the daemon, of the present event; its memory is reused
  std::unordered_map<session::waiter_id, checkpoint_handler> handlers_;
  session::waiter_id next_waiter_ = 1;
  std::optional<exit_status> status_;
  std::atomic<bool> have_calls_ended_ = false;  // read on the callbacks' thread
  /// Each oddity is logged once.
  std::array<bool, static_cast<std::size_t>(oddity::count)> logged_oddities_{};
  /// A message, or the end of the input, that came before its turn: see on_line.
  std::optional<line_decoder::outcome> early_line_;
  /// A line has come early. A transcript answers no checkpoint that it does not have.
  bool input_is_transcript_ = false;
};

}  // namespace kclxx::driver

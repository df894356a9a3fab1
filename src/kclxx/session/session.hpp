// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <kclxx/record_batch.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/sequence_position.hpp>

#include "protocol/message.hpp"
#include "session/checkpoints.hpp"
#include "session/output.hpp"

namespace kclxx::session {

// How an action closes, between the return of its callback and its status.

/// What follows when everything that can be sent is sent.
enum class closing_step {
  wait,    ///< for an answer, a timer or a request
  status,  ///< the action is closed
  leave,   ///< the session ends without a status, since a status means success
};

/// initialize and leaseLost: there is nothing to persist.
class close_at_once {
 public:
  closing_step next(checkpoints&, time_point, outputs&) { return closing_step::status; }
};

/// processRecords: a checkpoint goes out with the status, and the daemon answers it before it sends
/// the next action (P39).
class close_records {
 public:
  closing_step next(checkpoints& checkpoints, time_point now, outputs& out);
};

/// shutdownRequested: the last chance. It is awaited, and retried until shutdown_retry_limit has
/// passed since the callback's return (P46). Calls that wait in the callback have the same time
/// from the request on. One try is made in any case, even if a backoff would outlast the limit.
class close_shutdown {
 public:
  explicit close_shutdown(time_point last_retry) : last_retry_(last_retry) {}
  [[nodiscard]] time_point last_retry() const noexcept { return last_retry_; }
  closing_step next(checkpoints& checkpoints, time_point now, outputs& out);

 private:
  time_point last_retry_;
  bool has_tried_ = false;
};

/// shardEnded: the end of the shard is persisted once all records are complete (P50, P64).
class close_shard_end {
 public:
  explicit close_shard_end(int max_attempts) : max_attempts_(max_attempts) {}
  closing_step next(checkpoints& checkpoints, time_point now, outputs& out);
  /// The checkpoint of the end has failed.
  void count_failure() noexcept { ++attempts_; }
  [[nodiscard]] bool may_try_again() const noexcept { return attempts_ < max_attempts_; }
  void report_failure(outputs& out) const;
  /// Records are not complete, in checkpoint_mode::manual.
  [[nodiscard]] bool awaits_completion() const noexcept { return awaits_completion_; }
  void report_incomplete(const checkpoints& checkpoints, outputs& out) const;

 private:
  int max_attempts_;
  int attempts_ = 0;
  bool awaits_completion_ = false;
};

using closing_rule = std::variant<close_at_once, close_records, close_shutdown, close_shard_end>;

/// A processor that gave its shard up leaves after this time, if records still arrive: then this
/// worker has the lease after all (P68).
inline constexpr std::chrono::minutes give_up_patience{5};

/// User code has reported by an exception that the lease is gone. From then on the daemon's actions
/// are answered without a call, except for leaseLost (P65).
class given_up {
 public:
  given_up(std::string reason, time_point now)
      : reason_(std::move(reason)), since_(now), last_report_(now) {}

  /// The constructor of the processor threw.
  void lose_processor() noexcept { has_processor_ = false; }
  [[nodiscard]] bool is_called_for(action_kind kind) const noexcept {
    return kind == action_kind::lease_lost && has_processor_;
  }
  /// Logs that records up to `largest` are not processed. False when records have arrived for so
  /// long that this worker has the lease, so that a new processor must take the shard over.
  [[nodiscard]] bool report_unprocessed(const sequence_position& largest, lease_state lease,
                                        time_point now, outputs& out);
  void report_unfinished_end(outputs& out) const;

 private:
  std::string reason_;
  bool has_processor_ = true;
  time_point since_;
  time_point last_report_;
};

/// When on_callback_lasts is due. The checkpoints that a callback requests without waiting are sent
/// with its status, or at this moment if the callback still runs.
inline constexpr std::chrono::milliseconds callback_patience{5};

/// The dialogue with the daemon for one shard, as a state machine: each function takes an event
/// and appends what is to be done, in order. It knows no descriptor, thread or clock; time comes
/// with the events. docs/protocol.md is its specification.
///
///   starting -initialize-> calling -returned-> closing -status-> idle -action-> calling
///                             |                   |              +-> finished
///                             |                   +- the shard's end failed -> left
///                             +- user code threw -> failing - the rest is persisted -> left
///                             +- it must end -> leaving - returned, or too late -> left
///
/// User code can also throw in closing, idle and finished. In every phase but calling and leaving
/// the end of the input leads to left at once. Once the shard was given up, an action leads from
/// idle to closing: no callback is called.
///
/// Each way in which an action closes has a class (closing_rule), which decides what follows: wait,
/// write the status, or leave without a status. A stop is requested once: when the lease is lost or
/// given up, and in failing, leaving and left.
///
/// Thread safety: none.
class session {
 public:
  /// `seed` is for the jitter of the retries.
  explicit session(const run_options& options, std::uint32_t seed = 1);

  /// A line arrived and was understood. `batch` goes with processRecords.
  /// Precondition: an answer was asked for, and no action is open when an action comes.
  void on_message(protocol::message message, record_batch batch, time_point now, outputs& out);
  /// No answer will come to the checkpoint that is unanswered.
  void on_no_answer(time_point now, outputs& out);
  /// `unfinished_line`: the input broke off in the middle of a line.
  void on_end_of_input(bool unfinished_line, outputs& out);
  /// The input has ended behind a line that waits for its turn: from now on each callback has the
  /// grace time.
  void on_end_behind_line(outputs& out);

  /// The processor needs this mode.
  void set_mode(checkpoint_mode mode) noexcept { mode_ = mode; }
  void on_callback_returned(time_point now, outputs& out);
  /// How user code ended by an exception.
  struct failure {
    std::string text;  // what is logged
    bool is_lease_gone;
    bool is_in_callback = false;  // else between two callbacks, or on another thread
  };
  void on_threw(const failure& thrown, time_point now, outputs& out);
  /// Whether the session ends because of it. Once the lease is gone only an exception of lease_lost
  /// counts: any other may come from a wait that the stop has ended.
  [[nodiscard]] bool is_fatal(const failure& thrown) const noexcept;
  /// The session cannot continue. The first failure decides; later ones have no effect.
  void on_failure(exit_status status, const std::string& reason, outputs& out);
  void on_timer(timer timer, time_point now, outputs& out);

  /// checkpointer::checkpoint was called. `from_callback`: on the callbacks' thread, where a wait
  /// for a later action would never end.
  void on_checkpoint(waiter_id id, const std::optional<sequence_position>& position,
                     bool from_callback, time_point now, outputs& out);
  /// The waiting call's deadline passed. False when it has been completed meanwhile.
  bool on_deadline(waiter_id id, time_point now, outputs& out);
  /// checkpointer::async_checkpoint was called; `id` when it has a handler. The checkpoint is sent
  /// when the callback returns or lasts, so that one line serves all requests that were made
  /// meanwhile, and leaves together with the status.
  void on_async_checkpoint(const std::optional<waiter_id>& id,
                           const std::optional<sequence_position>& position, bool from_callback,
                           time_point now, outputs& out);
  /// The callback has lasted callback_patience.
  void on_callback_lasts(time_point now, outputs& out);

  /// An action of the daemon's has no status yet, and its session has not ended.
  [[nodiscard]] bool is_open() const noexcept {
    return phase_ == phase::calling || phase_ == phase::closing || phase_ == phase::failing;
  }
  /// The checkpoint that was sent and is not answered; SHARD_END is the null checkpoint.
  [[nodiscard]] const std::optional<sequence_position>& unanswered() const noexcept {
    return checkpoints_.unanswered();
  }
  /// The daemon's answer to the last checkpoint, which can be taken once.
  [[nodiscard]] bool has_answer() const noexcept { return observed_answer_.has_value(); }
  [[nodiscard]] std::optional<protocol::checkpoint_answer> take_answer() {
    return std::exchange(observed_answer_, std::nullopt);
  }
  /// The highest position that the daemon has persisted, or where reading began.
  [[nodiscard]] const std::optional<sequence_position>& persisted() const noexcept {
    return checkpoints_.persisted();
  }
  /// Whether the end of the shard is persisted.
  [[nodiscard]] bool is_shard_finished() const { return checkpoints_.is_shard_finished(); }
  /// The end of the shard waits for records that are not complete.
  [[nodiscard]] bool awaits_completion() const noexcept;

 private:
  enum class phase {
    starting,  // before initialize
    idle,      // no action is open
    finished,  // after leaseLost or shardEnded: no action that is known may come
    calling,   // a callback runs
    closing,   // no callback runs; the status waits for an answer, a timer or a request
    failing,   // user code threw; what was complete before is being checkpointed
    leaving,   // a callback still runs, but only its end is waited for
    left,
  };
  /// The action that is open: in calling, closing and failing.
  struct open_action {
    action_kind kind;
    std::string name;
    closing_rule close;
    bool lasts = false;  // the callback does, so pending checkpoints may be sent
  };

  [[nodiscard]] bool has_ended() const noexcept {
    return phase_ == phase::leaving || phase_ == phase::left;
  }
  [[nodiscard]] bool allows_checkpoints() const noexcept;
  [[nodiscard]] bool takes_requests() const noexcept;
  [[nodiscard]] const close_shard_end* shard_end() const noexcept;
  [[nodiscard]] bool is_shard_end_unanswered() const noexcept;

  void open(protocol::message message, record_batch batch, time_point now, outputs& out);
  void call_or_close(call callback, const std::optional<sequence_position>& largest, time_point now,
                     outputs& out);
  void report_without_lease(const sequence_position& largest, time_point now, outputs& out);
  [[nodiscard]] closing_rule rule_of(action_kind kind, time_point now) const;
  void write_status_of_unknown(const std::string& name, outputs& out);

  void on_answer(const protocol::checkpoint_answer& answer, time_point now, outputs& out);
  void on_shard_end_answer(const std::optional<std::string>& error, time_point now, outputs& out);
  checkpoints::outcome apply_answer(const std::optional<std::string>& error,
                                    const std::optional<time_point>& last_retry, time_point now,
                                    outputs& out);
  [[nodiscard]] std::optional<time_point> last_retry() const;
  void settle(checkpoints::outcome last, bool has_end_failed, time_point now, outputs& out);
  [[nodiscard]] checkpoints::send_scope send_scope() const;
  void proceed(time_point now, outputs& out);
  void send_next(time_point now, outputs& out);
  void close(time_point now, outputs& out);

  void give_up(const failure& thrown, time_point now, outputs& out);
  void fail(time_point now, outputs& out);
  void persist_complete_or_leave(time_point now, outputs& out);
  void fire_stop(outputs& out);
  void limit_callback(outputs& out) const;
  void abort(exit_status status, outputs& out);
  void leave_stuck(outputs& out);
  void leave_now(exit_status status, outputs& out);

  run_options options_;
  checkpoint_mode mode_ = checkpoint_mode::automatic;
  checkpoints checkpoints_;
  phase phase_ = phase::starting;
  std::optional<open_action> current_;
  std::optional<given_up> given_up_;
  std::optional<time_point> reported_without_lease_;
  std::optional<protocol::checkpoint_answer> observed_answer_;
  exit_status leaving_with_ = exit_status::ok;
  bool has_stopped_ = false;      // request_stop comes once
  bool has_input_ended_ = false;  // lines before the end may still wait for their turn
};

}  // namespace kclxx::session

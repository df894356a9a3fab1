// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <kclxx/record_batch.hpp>
#include <kclxx/run_options.hpp>

#include "protocol/message.hpp"
#include "session/action.hpp"
#include "session/checkpoints.hpp"

namespace kclxx::session {

/// When on_callback_lasts is due: what a callback asks to persist is sent with its status, but not
/// later.
inline constexpr std::chrono::milliseconds callback_patience{5};

/// A processor that gave its shard up leaves after this time, if records still arrive (P68).
inline constexpr std::chrono::minutes give_up_patience{5};

/// The dialogue with the daemon for one shard, as a state machine: each function takes an event
/// and appends what is to be done, in order. It knows no descriptor, thread or clock; time comes
/// with the events. docs/protocol.md is its specification.
///
/// Thread safety: none; the runtime feeds it under one mutex.
class session {
 public:
  /// `input_is_file`: a plain file, not a daemon, feeds it. All its lines are there at once, so its
  /// end is acted upon in its turn, and answers to checkpoints that were not sent are skipped.
  /// `seed` is for the jitter of the retries.
  explicit session(const run_options& options, bool input_is_file = false, std::uint32_t seed = 1);

  /// A line arrived and was understood. `batch` goes with processRecords.
  void on_message(protocol::message message, record_batch batch, time_point now, actions& out);
  /// A line arrived that cannot be understood; `text` is the whole message.
  void on_bad_line(const std::string& text, actions& out);
  /// `unfinished_line`: it broke off in the middle of a line.
  void on_end_of_input(bool unfinished_line, time_point now, actions& out);
  void on_output_broken(const std::string& why, actions& out);

  void on_callback_returned(time_point now, actions& out);
  /// A callback, or user code between two callbacks, threw; `what` is the whole message.
  void on_callback_threw(const std::string& what, time_point now, actions& out);
  /// A callback threw since the lease is gone: nothing can be persisted any more.
  void on_lease_gone_in_callback(const std::string& what, time_point now, actions& out);
  /// User code between two callbacks, or on another thread, threw for that reason.
  void on_lease_gone_elsewhere(const std::string& what, time_point now, actions& out);
  /// The process cannot continue, for instance for want of memory.
  void on_failure(exit_status status, const std::string& why, actions& out);
  void on_timer(timer which, time_point now, actions& out);

  /// A waiting call of checkpointer::checkpoint. `from_callback`: on the thread of the callbacks,
  /// where waiting for a later action would never end.
  void on_checkpoint(waiter_id id, const std::optional<sequence_position>& position,
                     bool from_callback, time_point now, actions& out);
  /// The waiting call's deadline passed. False when it has been completed meanwhile.
  bool on_deadline(waiter_id id, time_point now, actions& out);
  /// checkpointer::async_checkpoint; `id` when it has a handler. It is sent when the callback
  /// returns or lasts, so that one line serves all that were made meanwhile, and leaves together
  /// with the status.
  void on_async_checkpoint(const std::optional<waiter_id>& id,
                           const std::optional<sequence_position>& position, bool from_callback,
                           time_point now, actions& out);
  /// The callback has lasted callback_patience.
  void on_callback_lasts(time_point now, actions& out);
  /// Whether a checkpoint is unanswered.
  [[nodiscard]] bool awaits_answer() const noexcept { return checkpoints_.has_unanswered(); }
  /// The daemon's answer to the last one, which can be taken once.
  [[nodiscard]] bool has_answer() const noexcept { return answer_.has_value(); }
  [[nodiscard]] std::optional<protocol::checkpoint_answer> take_answer() {
    return std::exchange(answer_, std::nullopt);
  }
  /// Whether the end of the shard is persisted.
  [[nodiscard]] bool is_shard_finished() const { return checkpoints_.is_shard_finished(); }
  /// True once the end of the shard waits for records that are not complete.
  [[nodiscard]] bool awaits_completion() const noexcept {
    return current_ && current_->awaits_completion;
  }

 private:
  enum class phase {
    starting,  // before initialize
    idle,      // no action is open
    calling,   // a callback runs
    closing,   // it returned; the status waits for an answer
    failing,   // it threw; what was complete before is being checkpointed
    leaving,   // a callback still runs, but only its end is waited for
    left,
  };
  struct open_action {
    action_kind what;
    std::string name;
    // Of shutdown_requested.
    std::optional<time_point> last_retry{};
    bool tried_last_chance = false;
    // Of shard_ended.
    int end_attempts = 0;
    bool awaits_completion = false;  // of records
  };
  struct held_message {
    protocol::message message;
    record_batch batch;
  };
  /// User code threw since the lease is gone (P65).
  struct given_up {
    std::string why;
    time_point since;
    time_point last_report;
  };

  [[nodiscard]] bool is_open() const noexcept {
    return phase_ == phase::calling || phase_ == phase::closing || phase_ == phase::failing;
  }
  [[nodiscard]] bool allows_checkpoints() const noexcept;
  /// False when a plain file continues, or has ended, without the answer that is due.
  [[nodiscard]] bool can_be_answered() const;
  [[nodiscard]] bool has_ended() const noexcept {
    return phase_ == phase::leaving || phase_ == phase::left || input_ended_;
  }

  void on_answer(const protocol::checkpoint_answer& answer, time_point now, actions& out);
  void hold(protocol::message message, record_batch batch, time_point now, actions& out);
  void open(protocol::message message, record_batch batch, time_point now, actions& out);
  void call_or_answer(call next, const std::optional<sequence_position>& largest, time_point now,
                      actions& out);
  void give_up(const std::string& what, time_point now, actions& out);
  void report_unprocessed(const sequence_position& largest, time_point now, actions& out);
  void drop_unasked_answer(actions& out);
  void answer_unknown(const std::string& name, actions& out);

  [[nodiscard]] bool is_for_unanswered(const protocol::checkpoint_answer& answer) const;
  [[nodiscard]] checkpoints::urgency urgency() const;
  void send_next(time_point now, actions& out);
  void arm_pace(time_point now, actions& out);
  void after_request(time_point now, actions& out);
  void report_incomplete(actions& out);
  void close(time_point now, actions& out);
  void close_process_records(time_point now, actions& out);
  void close_shutdown(time_point now, actions& out);
  void close_shard_end(time_point now, actions& out);
  void finish_failing(checkpoints::outcome last, time_point now, actions& out);
  void write_status_and_continue(time_point now, actions& out);

  void fire_stop(actions& out);
  void abort(exit_status status, actions& out);
  void leave_now(exit_status status, actions& out);
  void report_unpersisted(actions& out);
  void leave_at_end(actions& out);

  run_options options_;
  bool input_is_file_;
  checkpoints checkpoints_;
  phase phase_ = phase::starting;
  std::optional<open_action> current_;
  std::optional<held_message> held_;
  std::optional<protocol::checkpoint_answer> answer_;  // for observers
  bool input_ended_ = false;                           // of a plain file: acted upon in its turn
  bool is_terminal_ = false;  // after leaseLost, shardEnded or shutdown: only the end may come
  bool stop_fired_ = false;
  std::optional<given_up> given_up_;
  bool has_processor_ = true;      // unless its construction threw since the lease is gone
  bool is_loss_reported_ = false;  // the daemon has reported that the lease is lost
  bool is_flushed_ = false;        // the callback has lasted: what is pending may be sent
  std::optional<time_point> pace_armed_for_;
  exit_status leaving_with_ = exit_status::ok;
};

}  // namespace kclxx::session

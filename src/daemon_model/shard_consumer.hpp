// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/lines.hpp"

namespace kclxx::daemon_model {

/// The shard's row in the lease table, as one worker sees it, with what checkpoints need of it: the
/// position that is persisted, whether this worker still owns the row, and how a write to it fails.
class lease {
 public:
  /// The simple name of the exception with which the write fails; std::nullopt: it succeeds.
  using fault = std::function<std::optional<std::string>(const sequence_position&)>;

  /// `checkpoint` may be a sentinel such as TRIM_HORIZON, when nothing was persisted yet.
  explicit lease(const sequence_position& checkpoint)
      : row_(std::make_shared<row>(row{checkpoint, 0})) {}

  /// The position that is persisted. A successor would resume after it.
  [[nodiscard]] const sequence_position& checkpoint() const noexcept { return row_->checkpoint; }

  /// Another worker takes the row: every write fails with ShutdownException from now on.
  void lose() noexcept {
    if (!is_lost()) ++row_->owner;
  }
  [[nodiscard]] bool is_lost() const noexcept { return row_->owner != owner_; }
  /// Gives the row to another worker, and returns the row as that worker sees it. The writes of the
  /// former owner fail from now on.
  [[nodiscard]] lease take_over() const { return lease(row_); }
  /// Sets the function that decides on each write. It replaces an earlier one.
  void set_fault(fault decide) { fault_ = std::move(decide); }

  /// Writes the row. std::nullopt when the write has succeeded, else the exception's simple name.
  std::optional<std::string> set_checkpoint(const sequence_position& position) {
    if (is_lost()) return "ShutdownException";
    if (fault_) {
      if (auto name = fault_(position)) {
        if (*name == "ShutdownException") lose();
        return name;
      }
    }
    row_->checkpoint = position;
    return std::nullopt;
  }

 private:
  struct row {
    sequence_position checkpoint;
    std::uint64_t owner;  ///< how many workers have owned the row before
  };

  explicit lease(std::shared_ptr<row> taken) : row_(std::move(taken)), owner_(++row_->owner) {}

  std::shared_ptr<row> row_;
  std::uint64_t owner_ = 0;  ///< row::owner while this worker owns the row
  fault fault_;
};

/// The KCL's ShardRecordProcessorCheckpointer: which checkpoints are in range, and which reach the
/// lease table at all.
class shard_record_processor_checkpointer {
 public:
  /// `lease` outlives this object.
  explicit shard_record_processor_checkpointer(lease& lease)
      : lease_(lease), last_(lease.checkpoint()), largest_permitted_(lease.checkpoint()) {}

  /// A batch is delivered whose largest position this is.
  void deliver(const sequence_position& largest) {
    if (largest_permitted_ < largest) largest_permitted_ = largest;
  }
  /// The shard's end is to be checkpointed from now on.
  void begin_shard_end() {
    last_of_shard_ = largest_permitted_;
    largest_permitted_ = sequence_position("SHARD_END");
  }

  struct outcome {
    std::optional<std::string> error{};            ///< the exception's simple name
    std::optional<sequence_position> attempted{};  ///< what reached the lease table, if anything
  };
  outcome checkpoint(const child_checkpoint& asked);

  /// The last position that a checkpoint has persisted, or that the lease began with.
  [[nodiscard]] const sequence_position& last() const noexcept { return last_; }
  [[nodiscard]] const sequence_position& largest_permitted() const noexcept {
    return largest_permitted_;
  }

 private:
  [[nodiscard]] std::optional<sequence_position> permitted(const child_checkpoint& asked) const;
  outcome advance(const sequence_position& position);

  lease& lease_;
  sequence_position last_;
  sequence_position largest_permitted_;
  /// The largest position that was delivered, once the shard has ended: it then means the end.
  std::optional<sequence_position> last_of_shard_;
};

using protocol::action_kind;

/// The message about a child that continues to write and does not read its answer (P39).
inline constexpr std::string_view unread_answer =
    "both wait for each other: the daemon writes an answer before it reads on";

/// A checkpoint line from the child was answered.
struct answered {
  child_checkpoint asked;
  std::optional<std::string> error;            ///< the exception's simple name
  std::optional<sequence_position> attempted;  ///< what reached the lease table, if anything
  std::string line;                            ///< to be written to the child
};

/// A line from the child was skipped as unexpected, or read and passed over.
struct skipped {
  std::string line;
  std::string why;
  /// The reason why it was skipped; std::nullopt when it was read and has no effect.
  std::optional<ignored_line::reason> because{};
};

/// The status came that the open call waited for.
struct returned {
  action_kind kind;
};

/// The call failed, and the daemon continues. This holds for shutdownRequested alone (P27).
struct failed {
  action_kind kind;
  std::string why;
};

/// The shard was ended, but its end is not checkpointed: its child shards are never read.
struct shard_end_not_checkpointed {};

/// The child's stdin is closed; from here on the daemon waits for the end of its output, without a
/// time limit.
struct close_input {};

/// The child has written a line that nobody will read.
struct lost_line {
  std::string line;
};

/// The daemon exits with status 1 once the child has gone: all shards of the worker end with it.
struct worker_ended {
  std::string why;
};

using daemon_event = std::variant<answered, skipped, returned, failed, shard_end_not_checkpointed,
                                  close_input, lost_line, worker_ended>;
using daemon_events = std::vector<daemon_event>;

/// One shard's side of the daemon: the KCL's ShardConsumer, the checkpointer, and the
/// MultiLangDaemon's protocol with its child, as a state machine. Events go in: the daemon's wishes
/// (call, close) and the child's lines. Each function appends the events that follow to `out`. The
/// caller writes the line of a call itself, so that a batch need not pass through here.
///
/// Pure: no descriptor, thread or clock. Thread safety: none.
class shard_consumer {
 public:
  /// `lease` outlives this object.
  explicit shard_consumer(lease& lease) : lease_(lease), checkpointer_(lease) {}

  /// The daemon writes the line of this call and then reads. `action` is the name in the line,
  /// which the status must repeat: `shutdown` for both endings of a daemon before 2.1 (P11).
  /// `largest`: the highest position among the records of process_records. Lines that the child
  /// wrote before are read first, as from a pipe. Precondition: can_call(kind).
  void call(action_kind kind, std::string_view action,
            const std::optional<sequence_position>& largest, daemon_events& out);
  /// Whether a daemon would make this call now: initialize comes first and once, the end of input
  /// alone follows an ending, and no records follow shutdownRequested (P28).
  [[nodiscard]] bool can_call(action_kind kind) const noexcept;

  /// A line (without its newline) from the child; it waits unread between calls (P25). To the
  /// daemon a carriage return ends a line, too.
  void on_line(std::string_view line, daemon_events& out);
  /// The child closed its stdout, or died.
  void on_end_of_output(daemon_events& out);
  /// The worker stops between two calls, as after a SIGTERM or a failure of another shard: the
  /// child's stdin is closed.
  void close(daemon_events& out);

  /// Whether the status of a call is waited for.
  [[nodiscard]] bool is_waiting() const noexcept { return open_call_.has_value(); }
  /// The call whose status is waited for. Precondition: is_waiting().
  [[nodiscard]] action_kind waits_for() const noexcept { return open_call_->kind; }
  /// Whether the child's stdin is closed.
  [[nodiscard]] bool is_closed() const noexcept { return is_closed_; }
  [[nodiscard]] bool has_worker_ended() const noexcept { return worker_ended_; }
  [[nodiscard]] const shard_record_processor_checkpointer& checkpointer() const noexcept {
    return checkpointer_;
  }

 private:
  struct call_in_progress {
    action_kind kind;
    std::string action;
  };

  void read(daemon_events& out);
  void read_line(const std::string& line, daemon_events& out);
  void answer(const child_checkpoint& asked, daemon_events& out);
  [[nodiscard]] bool has_checkpointer() const noexcept;
  void finish(daemon_events& out);
  void fail(std::string reason, daemon_events& out);
  void close_child(daemon_events& out);

  lease& lease_;
  shard_record_processor_checkpointer checkpointer_;
  std::deque<std::string> unread_lines_;
  std::optional<call_in_progress> open_call_;
  bool is_initialized_ = false;
  bool shutdown_was_requested_ = false;
  bool output_ended_ = false;
  bool is_closed_ = false;
  bool worker_ended_ = false;
};

/// For a report, or a test that reads as a dialogue.
std::string to_string(const daemon_event& event);

}  // namespace kclxx::daemon_model

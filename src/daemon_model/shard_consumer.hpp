// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
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

/// The shard's row in the lease table, as one worker sees it and as far as checkpoints do: what is
/// persisted, whether this worker still owns it, and how writing to it fails.
class lease {
 public:
  /// The simple name of the exception with which the write fails; std::nullopt: it succeeds.
  using fault = std::function<std::optional<std::string>(const sequence_position&)>;

  /// `checkpoint` may be a sentinel such as TRIM_HORIZON: nothing was persisted yet.
  explicit lease(const sequence_position& checkpoint)
      : row_(std::make_shared<row>(row{checkpoint, 0})) {}

  /// Where a successor would resume: after this position.
  [[nodiscard]] const sequence_position& checkpoint() const noexcept { return row_->checkpoint; }

  /// Another worker took it: every write fails with ShutdownException from now on.
  void lose() noexcept {
    if (!is_lost()) ++row_->owner;
  }
  [[nodiscard]] bool is_lost() const noexcept { return row_->owner != owner_; }
  /// The same row, as the worker sees it that takes it now. Whoever had it has lost it.
  [[nodiscard]] lease take_over() const { return lease(row_); }
  /// Asked before each write, in place of the one that was set before.
  void set_fault(fault decide) { fault_ = std::move(decide); }

  /// A write. std::nullopt when it succeeded, else the exception's simple name.
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
    std::uint64_t owner;  // counts those who had it
  };

  explicit lease(std::shared_ptr<row> taken) : row_(std::move(taken)), owner_(++row_->owner) {}

  std::shared_ptr<row> row_;
  std::uint64_t owner_ = 0;
  fault fault_;
};

/// The KCL's ShardRecordProcessorCheckpointer: which checkpoints are in range, and which reach the
/// lease table at all.
class shard_record_processor_checkpointer {
 public:
  /// `lease` outlives this object.
  explicit shard_record_processor_checkpointer(lease& lease)
      : lease_(lease), last_(lease.checkpoint()), largest_permitted_(lease.checkpoint()) {}

  void deliver(const sequence_position& largest) {
    if (largest_permitted_ < largest) largest_permitted_ = largest;
  }
  /// The shard's end is to be checkpointed from now on.
  void begin_shard_end() {
    at_shard_end_ = largest_permitted_;
    largest_permitted_ = sequence_position("SHARD_END");
  }

  struct outcome {
    std::optional<std::string> error{};            ///< the exception's simple name
    std::optional<sequence_position> attempted{};  ///< what reached the lease table, if anything
  };
  outcome checkpoint(const child_checkpoint& asked);

  /// The last one that succeeded.
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
  std::optional<sequence_position> at_shard_end_;
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
  bool operator==(const answered&) const = default;
};

/// A line from the child was skipped as unexpected, or read and passed over.
struct skipped {
  std::string line;
  std::string why;
  /// std::nullopt: it was read, and has no effect.
  std::optional<ignored_line::reason> because{};
  bool operator==(const skipped&) const = default;
};

/// The status came that the open call waited for.
struct returned {
  action_kind kind;
  bool operator==(const returned&) const = default;
};

/// The call failed, but the daemon continues (shutdownRequested only: it is logged).
struct failed {
  action_kind kind;
  std::string why;
  bool operator==(const failed&) const = default;
};

/// The shard was ended, but its end is not checkpointed: its child shards are never read.
struct shard_end_not_checkpointed {
  bool operator==(const shard_end_not_checkpointed&) const = default;
};

/// The child's stdin is closed; from here on the daemon waits for the end of its output, without a
/// time limit.
struct close_input {
  bool operator==(const close_input&) const = default;
};

/// The child had written this, but nobody reads it any more.
struct lost_line {
  std::string line;
  bool operator==(const lost_line&) const = default;
};

/// System.exit(1), once the child has gone: all shards of the worker end with it.
struct worker_ended {
  std::string why;
  bool operator==(const worker_ended&) const = default;
};

using daemon_event = std::variant<answered, skipped, returned, failed, shard_end_not_checkpointed,
                                  close_input, lost_line, worker_ended>;
using daemon_events = std::vector<daemon_event>;

/// One shard's side of the daemon: the KCL's ShardConsumer, the checkpointer, and the
/// MultiLangDaemon's protocol with its child, as a state machine. It receives what the daemon wants
/// (call, close) and what the child wrote, and appends what happens. The caller writes the call's
/// own line; huge batches then need not pass through here.
///
/// Pure: no descriptor, thread or clock. Thread safety: none.
class shard_consumer {
 public:
  /// `lease` outlives this object.
  explicit shard_consumer(lease& lease) : lease_(lease), checkpointer_(lease) {}

  /// The daemon writes the line of this call and then reads. `action` is the name that its line
  /// has, and that the status must repeat: `shutdown` for both endings of a daemon before 2.1
  /// (P11). `largest`: the highest position among the records of process_records. Lines that the
  /// child wrote before are read first, as from a pipe. Precondition: can_call(kind).
  void call(action_kind kind, std::string_view action,
            const std::optional<sequence_position>& largest, daemon_events& out);
  /// Whether a daemon would do this now: initialize first and once, nothing after an ending but
  /// the end of input, no records after shutdownRequested.
  [[nodiscard]] bool can_call(action_kind kind) const noexcept;

  /// A line (without its newline) from the child; it waits unread between calls (P25). To the
  /// daemon a carriage return ends a line, too.
  void on_line(std::string_view line, daemon_events& out);
  /// The child closed its stdout, or died.
  void on_end_of_output(daemon_events& out);
  /// The worker stops between two calls, as after a SIGTERM or a failure of another shard: the
  /// child's stdin is closed.
  void close(daemon_events& out);

  [[nodiscard]] bool is_waiting() const noexcept { return open_.has_value(); }
  /// The call whose status is waited for. Precondition: is_waiting().
  [[nodiscard]] action_kind waits_for() const noexcept { return open_->kind; }
  /// The child's stdin is closed.
  [[nodiscard]] bool is_closed() const noexcept { return closed_; }
  [[nodiscard]] bool has_worker_ended() const noexcept { return worker_ended_; }
  [[nodiscard]] const shard_record_processor_checkpointer& checkpointer() const noexcept {
    return checkpointer_;
  }

 private:
  struct open_call {
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
  std::deque<std::string> unread_;
  std::optional<open_call> open_;
  bool is_initialized_ = false;
  bool shutdown_was_requested_ = false;
  bool output_ended_ = false;
  bool closed_ = false;
  bool worker_ended_ = false;
};

std::ostream& operator<<(std::ostream& out, const daemon_event& event);

}  // namespace kclxx::daemon_model

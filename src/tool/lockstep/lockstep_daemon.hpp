// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

#include "daemon_model/shard_consumer.hpp"
#include "tool/process/dialogue.hpp"

namespace kclxx::tool {

// What the daemon asks of a child, ready to be sent.

struct action {
  protocol::action_kind kind;
  std::string name;  ///< which the status must repeat
  std::string line;  ///< without its newline
  std::optional<sequence_position> largest{};
  std::string note{};  ///< what a report adds when it is not answered
};

action records_action(const std::vector<record>& records, std::int64_t millis_behind_latest);
/// Records with these payloads and sequence numbers counted up from `first`.
action records_of(const std::vector<std::string>& payloads, std::uint64_t first);
/// User records of one aggregated record, with sub-sequence numbers counted up from `first`.
action aggregated_records_of(const std::vector<std::string>& payloads,
                             std::string_view sequence_number, std::size_t first = 0);
/// processRecords with this text for its records and this for millisBehindLatest, for what a
/// daemon's own writer would not write.
action raw_records(std::string_view records, std::uint64_t largest,
                   std::string_view millis_behind_latest = "0");
action shutdown_requested();
action lease_lost();
action shard_ended();
/// The ending of 1.x and 2.0: TERMINATE, SHARD_END, ZOMBIE or LEASE_LOST.
action old_shutdown(std::string_view reason);
action unknown_action();

/// The child does not do what the rule expects; what() is what was seen.
class breach : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// This child never does what the rule is about; what() is why it cannot be judged.
class not_applicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A checkpoint line of the child, and what the daemon made of it.
struct checkpoint_seen {
  protocol::action_kind during;
  daemon_model::child_checkpoint asked;
  std::optional<std::string> error;  ///< the daemon's answer
  sequence_position last;            ///< the last one that succeeded, as this one came
  sequence_position largest;         ///< the largest that was permitted then
};

/// "a checkpoint with sequence number ...", for a report.
std::string to_string(const checkpoint_seen& checkpoint);
/// The position that it means; std::nullopt: not a position.
std::optional<sequence_position> position_of(const checkpoint_seen& checkpoint);

/// A line that the daemon would skip.
struct noise_seen {
  std::string line;
  std::string why;
  bool is_message = false;  ///< a message, but with a field that the daemon cannot read
};

/// What came of an action.
struct reaction {
  bool is_answered = false;
  bool is_wrong = false;   ///< a status came, for another action
  bool is_gone = false;    ///< the child's output ended
  std::string unfinished;  ///< what is there without a newline
  std::string seen;        ///< what came instead of the status
};

/// How long a child may take.
struct time_limits {
  std::chrono::milliseconds step{10000};     ///< for an action, for its end, to read an answer
  std::chrono::milliseconds retries{30000};  ///< from the first checkpoint that it may repeat
};

/// The daemon's side of the dialogue with one child, played in lockstep by the daemon model. Keeps
/// what the rules want to look at.
class lockstep_daemon {
 public:
  lockstep_daemon(std::unique_ptr<dialogue> child, std::string shard_id, const time_limits& limits,
                  const sequence_position& resume_at);

  [[nodiscard]] const std::string& shard_id() const noexcept { return shard_id_; }
  /// For the shard of this child, at the position of its row.
  [[nodiscard]] action initialize() const;

  /// Sends it, and waits for its status: what the rule is about. Errors: breach, when that does
  /// not come; it begins with the circumstances.
  void call(const action& action, std::string_view circumstances = {});
  /// The same for what only leads there, and has a rule of its own. Errors: not_applicable.
  void prepare(const action& action);
  /// The same; the reaction has what came. The limit, a step's if none is given, is for all of it,
  /// unless a checkpoint fails that the child may repeat.
  reaction attempt(const action& action, std::optional<std::chrono::milliseconds> limit = {});
  /// Each in its turn, as long as they are answered. False: one was not.
  bool attempt_all(const std::vector<action>& actions);
  /// Each in its turn, though checkpoints fail. Errors, for one that is not answered: breach, when
  /// a checkpoint has failed, also by the child's own mistake; else not_applicable.
  void call_all(const std::vector<action>& actions);
  /// Only sends it: for a rule that reads the answer itself.
  void send(const action& action);
  /// Writes a line, or with an empty `end` a part of one. What the child writes meanwhile is kept.
  /// Gives up when the child does not read, for as long as the time limit of a step.
  void write(std::string_view text, std::string_view end = "\n");
  /// Writes an answer to a checkpoint, or a part of one. As the daemon does, it takes no line of
  /// the child in the meantime. False: the child has not read it within the time limit of a step.
  bool answer(std::string_view text, std::string_view end = "\n");
  /// Lets this time pass. What the child writes in it is not lost.
  void pause(std::chrono::milliseconds time);
  /// Until the child has read all that was sent, its input is closed, or a step's limit is over.
  void wait_until_read();
  /// The child's next line, the end of its output, or what it has begun at the deadline.
  dialogue::event next_line(dialogue::clock::time_point deadline);

  /// Waits for the status of what send() has sent, for as long as attempt().
  reaction await(const action& action, std::optional<std::chrono::milliseconds> limit = {});

  /// Whether the child's output ends within `time` while no action is open. What it writes until
  /// then is read with the next action.
  bool ends_within(std::chrono::milliseconds time);
  /// Lines that come within `time` while no action is open.
  std::vector<std::string> drain(std::chrono::milliseconds time);
  /// Closes the child's input and waits for its end. std::nullopt: not within the limit. What it
  /// wrote in the meantime is in `late`.
  std::optional<child_exit> leave();
  /// What leave() gives, after which the rule ends: "it left with exit status 1", for a report.
  std::string end_text();

  /// Whether the status of any action did not come in time.
  [[nodiscard]] bool has_timed_out() const noexcept { return has_timed_out_; }
  /// The first checkpoint that failed with this error; null when none did. With a fault of the row
  /// it tells whether that was met: a position that is out of range never gets as far.
  /// Lifetime: until the next action.
  [[nodiscard]] const checkpoint_seen* failed_with(std::string_view error) const;

  /// Lets the next `count` writes to the row fail, or all; only those of this position, if one is
  /// given.
  void fail_writes(std::string error, std::optional<int> count = std::nullopt,
                   std::optional<sequence_position> only = std::nullopt);
  /// The shard's row in the lease table; its faults are the rule's to set.
  daemon_model::lease row;
  /// Sends the line (without its newline) of an answer to a checkpoint, where a rule wants another
  /// line, or another time. False: the child did not read it.
  std::function<bool(std::string line)> write_answer;
  std::vector<checkpoint_seen> checkpoints;
  std::vector<noise_seen> noise;
  std::vector<std::string> late;  ///< lines after the last status, which nobody reads
  /// The first checkpoint that the daemon refused though no write failed, for a report. In
  /// initialize and leaseLost that has rules of its own.
  std::string refused;
  std::size_t messages = 0;
  std::size_t glued = 0;  ///< messages that did not begin with a newline
  [[nodiscard]] dialogue& peer() noexcept { return *child_; }
  [[nodiscard]] std::chrono::milliseconds limit() const noexcept { return limits_.step; }

 private:
  /// Until when the status may come, and how the report names that.
  struct wait {
    dialogue::clock::time_point deadline;
    std::chrono::milliseconds limit{};
    std::string_view option{};
  };

  dialogue::event next_event(dialogue::clock::time_point deadline,
                             dialogue::output lines = dialogue::output::is_read);
  void keep_lines(dialogue::clock::time_point deadline, bool until_sent);
  reaction take(std::string_view line);
  void give(const daemon_model::answered& answer);
  std::string explain(const action& action, const dialogue::event& last);
  [[nodiscard]] std::string explain_stuck(const action& action) const;

  std::unique_ptr<dialogue> child_;
  std::string shard_id_;
  time_limits limits_;
  daemon_model::shard_consumer consumer_;
  wait wait_;
  bool is_sending_ = false;
  bool is_stuck_ = false;  // an answer was not read
  bool has_timed_out_ = false;
  bool output_ended_ = false;
  std::deque<std::string> early_;  // lines that came while a line was sent, or between two actions
  std::string taken_;              // of these
  bool is_after_blank_ = false;
  std::optional<std::optional<child_exit>> end_;
};

std::string to_string(const std::optional<child_exit>& end, std::chrono::milliseconds limit);
/// "shardId-000000000007", as Kinesis names them, up to 12 digits.
std::string shard_name(std::uint64_t number);
/// In quotes, cut short, fit for one line of a report.
std::string in_quotes(std::string_view text);

}  // namespace kclxx::tool

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

/// An action of the daemon, ready to be sent.
struct action {
  protocol::action_kind kind;
  std::string name;                            ///< the status must repeat it
  std::string line;                            ///< without its newline
  std::optional<sequence_position> largest{};  ///< the largest position of the records
  std::string note{};  ///< what a report adds when the action is not answered
};

action records_action(const std::vector<record>& records, std::int64_t millis_behind_latest);
/// Records with these payloads and sequence numbers counted up from `first`.
action records_of(const std::vector<std::string>& payloads, std::uint64_t first);
/// User records of one aggregated record, with sub-sequence numbers counted up from `first`.
action aggregated_records_of(const std::vector<std::string>& payloads,
                             std::string_view sequence_number, std::size_t first = 0);
/// processRecords with these texts for its records and for millisBehindLatest. It can say what the
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

/// The child never does what the rule is about; what() is why it cannot be judged.
class not_applicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A checkpoint line of the child, and what the daemon made of it.
struct checkpoint_seen {
  protocol::action_kind during;
  daemon_model::child_checkpoint asked;
  std::optional<std::string> error;  ///< the error in the daemon's answer
  sequence_position last;            ///< the last position that was persisted when it came
  sequence_position largest;         ///< the largest position that was permitted then
};

/// "a checkpoint with sequence number ...", for a report.
std::string to_string(const checkpoint_seen& checkpoint);
/// The position that the checkpoint means; std::nullopt when it is no position.
std::optional<sequence_position> position_of(const checkpoint_seen& checkpoint);

/// A line that the daemon would skip.
struct noise_seen {
  std::string line;
  std::string why;
  bool is_message = false;  ///< a message, but with a field that the daemon cannot read
};

/// What a child does with an action.
struct reaction {
  bool is_answered = false;
  bool is_wrong = false;   ///< the status is for another action
  bool is_gone = false;    ///< the child's output has ended
  std::string unfinished;  ///< text of the child that has no newline yet
  std::string seen;        ///< what came in place of the status
};

/// How long a child may take.
struct time_limits {
  /// The limit for an action, for the child's end, and for reading an answer.
  std::chrono::milliseconds step{10000};
  /// The limit for an action from the first checkpoint on that the child may repeat.
  std::chrono::milliseconds retries{30000};
};

/// The daemon's side of the dialogue with one child, which the daemon model plays in lockstep. It
/// keeps what rules look at. Thread safety: none.
/// Blocking: each function that sends or waits, for as long as it says.
class lockstep_daemon {
 public:
  lockstep_daemon(std::unique_ptr<dialogue> child, std::string shard_id, const time_limits& limits,
                  const sequence_position& resume_at);

  [[nodiscard]] const std::string& shard_id() const noexcept { return shard_id_; }
  /// An initialize for the child's shard, at the position of its row.
  [[nodiscard]] action initialize() const;

  /// Sends an action that the rule is about, and waits for its status. Errors: breach when that
  /// does not come; what() begins with the circumstances.
  void call(const action& action, std::string_view circumstances = {});
  /// Sends an action that leads to what the rule is about, and waits for its status. Errors:
  /// not_applicable when that does not come, which another rule judges.
  void prepare(const action& action);
  /// Sends an action, and waits for its status. The limit, that of a step if none is given, is for
  /// both, unless a checkpoint fails that the child may repeat.
  reaction attempt(const action& action, std::optional<std::chrono::milliseconds> limit = {});
  /// Attempts the actions in order, until the child does not answer. False: it did not answer.
  bool attempt_all(const std::vector<action>& actions);
  /// Attempts the actions in order, while checkpoints may fail. Errors, when the child does not
  /// answer: breach if a checkpoint has failed, also by the child's own mistake; else
  /// not_applicable.
  void call_all(const std::vector<action>& actions);
  /// Sends an action, for a rule that reads the answer itself.
  void send(const action& action);
  /// Writes a line, or with an empty `end` a part of a line. What the child writes meanwhile is
  /// kept. Gives up when the child does not read within the limit of a step.
  void write(std::string_view text, std::string_view end = "\n");
  /// Writes an answer to a checkpoint, or a part of an answer. As the daemon, it takes no line of
  /// the child meanwhile (P39). False: the child has not read it within the limit of a step.
  bool answer(std::string_view text, std::string_view end = "\n");
  /// Lets this time pass. What the child writes in it is not lost.
  void pause(std::chrono::milliseconds time);
  /// Waits until the child has read all that was sent, its input is closed, or a step's limit is
  /// over.
  void wait_until_read();
  /// The child's next line, the end of its output, or at the deadline a line without its newline.
  dialogue::event next_line(dialogue::clock::time_point deadline);

  /// Waits for the status of an action that send() has sent. The limit is that of attempt().
  reaction await(const action& action, std::optional<std::chrono::milliseconds> limit = {});

  /// Whether the child's output ends within `time` while no action is open. What the child writes
  /// until then is read with the next action.
  bool ends_within(std::chrono::milliseconds time);
  /// The lines that come within `time` while no action is open.
  std::vector<std::string> drain(std::chrono::milliseconds time);
  /// Closes the child's input and waits for its end. std::nullopt: it has not ended within the
  /// limit of a step. What it wrote meanwhile is in `late`.
  std::optional<child_exit> leave();
  /// The result of leave() for a report: "it left with exit status 1". It ends the dialogue.
  std::string end_text();

  /// Whether the status of any action did not come in time.
  [[nodiscard]] bool has_timed_out() const noexcept { return has_timed_out_; }
  /// The first checkpoint that failed with this error; null when none did. It tells whether a fault
  /// of the row has met a checkpoint: one that is out of range is refused before.
  /// Lifetime: until the next action.
  [[nodiscard]] const checkpoint_seen* failed_with(std::string_view error) const;

  /// Lets the next `count` writes to the row fail, or every write. `only`: those of this position.
  void fail_writes(std::string error, std::optional<int> count = std::nullopt,
                   std::optional<sequence_position> only = std::nullopt);
  /// The shard's row in the lease table. A rule sets its faults.
  daemon_model::lease row;
  /// Sends an answer to a checkpoint, a line without its newline. A rule may replace it, for
  /// another line, or another time. False: the child did not read the answer.
  std::function<bool(std::string line)> write_answer;
  std::vector<checkpoint_seen> checkpoints;
  std::vector<noise_seen> noise;
  std::vector<std::string> late;  ///< lines after the last status, which nobody reads
  /// The first checkpoint that the daemon refused though no write failed, for a report. Checkpoints
  /// in initialize and leaseLost are left out: they have rules of their own.
  std::string refused;
  std::size_t messages = 0;
  std::size_t glued_messages = 0;  ///< messages that did not begin with a newline
  [[nodiscard]] dialogue& peer() noexcept { return *child_; }
  [[nodiscard]] std::chrono::milliseconds limit() const noexcept { return limits_.step; }

 private:
  /// The time limit of the open action.
  struct status_limit {
    dialogue::clock::time_point deadline;
    std::chrono::milliseconds limit{};
    std::string_view option{};  ///< " (--timeout)": the option that has set it, for a report
  };

  dialogue::event next_event(dialogue::clock::time_point deadline,
                             dialogue::output lines = dialogue::output::is_read);
  void keep_lines(dialogue::clock::time_point deadline, bool until_sent);
  reaction take(std::string_view line);
  void keep_checkpoint(const checkpoint_seen& checkpoint, bool was_attempted);
  void give(const daemon_model::answered& answer);
  std::string explain(const action& action, const dialogue::event& last);
  [[nodiscard]] std::string explain_stuck(const action& action) const;

  std::unique_ptr<dialogue> child_;
  std::string shard_id_;
  time_limits limits_;
  daemon_model::shard_consumer consumer_;
  status_limit status_limit_;
  bool is_sending_ = false;
  bool is_stuck_ = false;  ///< the child has not read the last answer
  bool has_timed_out_ = false;
  bool output_ended_ = false;
  /// Lines that came while a line was sent, or between two actions.
  std::deque<std::string> early_lines_;
  std::string taken_line_;  ///< the early line that next_line() gave last
  bool is_after_blank_ = false;
  std::optional<std::optional<child_exit>> end_;  ///< the result of leave(), once it was called
};

std::string to_string(const std::optional<child_exit>& end, std::chrono::milliseconds limit);
/// "shardId-000000000007", as Kinesis names them, up to 12 digits.
std::string shard_name(std::uint64_t number);
/// The text in quotes, cut short, so that it fits into a line of a report.
std::string in_quotes(std::string_view text);

}  // namespace kclxx::tool

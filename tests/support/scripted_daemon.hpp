// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace kclxx::test {

/// What a test expected of a child and did not get; what() has the dialogue so far.
class dialogue_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A child process on pipes, as the daemon starts one, and a daemon's side of the dialogue with
/// it. Each wait has a time limit; a child that is left is killed, by its id. With
/// KCLXX_TEST_LAUNCHER in the environment, that program is started with the command as arguments.
class scripted_daemon {
 public:
  static constexpr std::chrono::seconds answer_limit{20};
  struct start_options {
    /// A plain file as stdin instead of a pipe.
    std::string input_file{};
    /// NAME=VALUE, in addition to this process's environment.
    std::vector<std::string> environment{};
    /// A pipe as stderr that is full, and that nobody reads.
    bool stderr_is_full = false;
    /// O_NONBLOCK on the child's stdout, as a parent may leave it.
    bool stdout_is_non_blocking = false;
  };

  explicit scripted_daemon(std::vector<std::string> command) : scripted_daemon(command, {}) {}
  scripted_daemon(const std::vector<std::string>& command, const start_options& options);
  ~scripted_daemon();
  scripted_daemon(const scripted_daemon&) = delete;
  scripted_daemon& operator=(const scripted_daemon&) = delete;

  // What the daemon sends.
  void send(std::string_view line);
  /// Without a newline; false when the child does not read any more.
  bool send_raw(std::string_view bytes);
  void initialize();
  /// One record per text, with sequence numbers counted up from `first`.
  void records(const std::vector<std::string>& texts, std::uint64_t first = 1);
  /// Sends such records to a callback that needs no checkpoint, and waits until it has returned.
  void process(const std::vector<std::string>& texts, std::uint64_t first = 1) {
    records(texts, first);
    expect_status("processRecords");
  }
  void lease_lost() { send(R"({"action":"leaseLost"})"); }
  void shard_ended() { send(R"({"action":"shardEnded"})"); }
  void shutdown_requested() { send(R"({"action":"shutdownRequested"})"); }
  /// Answers the last checkpoint line; an empty error: it is persisted.
  void answer(std::string_view error = {});
  void close_input();

  // What the child writes.
  /// The next line that is not empty.
  std::string next_line();
  void expect(std::string_view line);
  void expect_status(std::string_view action);
  void expect_checkpoint(std::string_view sequence_number);
  void expect_null_checkpoint();
  /// True when nothing comes within this time.
  bool is_silent_for(std::chrono::milliseconds time);
  /// Everything until the child closes its stdout, or writes nothing for this time.
  std::string rest(std::chrono::milliseconds silence = answer_limit);

  void signal_group(int signal) const;
  /// The child's exit status, or 1000 + the number of the signal that ended it.
  int wait_exit(std::chrono::milliseconds limit = std::chrono::seconds(60));
  /// Closes the input. Returns the exit status.
  int end() {
    close_input();
    return wait_exit();
  }
  /// What the child has written to stderr so far; waits until it has `text`.
  std::string await_stderr(std::string_view text);
  [[nodiscard]] std::string stderr_so_far();
  /// Reads stderr until nobody has it open.
  void await_end_of_stderr();
  /// kill -9, of the child alone.
  void kill();
  [[nodiscard]] std::size_t resident_kib() const;
  [[nodiscard]] std::size_t most_resident_kib() const;
  /// How often its threads have waited so far.
  [[nodiscard]] std::size_t wake_ups() const;

 private:
  bool fill(std::chrono::milliseconds limit);
  [[noreturn]] void fail(const std::string& what);
  bool drain_stderr();
  bool wait_for_stderr(std::chrono::steady_clock::time_point deadline) const;

  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
  int unread_error_ = -1;
  std::string checkpointed_ = R"("sequenceNumber":null)";  // by the last checkpoint line
  std::string buffer_;
  std::string stderr_;
  std::string dialogue_;
};

std::string base64(std::string_view bytes);
/// One line of processRecords; see scripted_daemon::records.
std::string records_line(const std::vector<std::string>& texts, std::uint64_t first = 1);

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "support/descriptors.hpp"

namespace kclxx::test {

/// The child did not do what the test expected; what() has the dialogue so far.
class dialogue_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A child process on pipes, as the daemon starts one, and the daemon's side of the dialogue with
/// it. Each wait has a time limit. The destructor kills a child that still runs, by its id. If
/// KCLXX_TEST_LAUNCHER is set, that program is started with the command as its arguments.
class scripted_daemon {
 public:
  static constexpr std::chrono::seconds answer_limit{20};
  struct start_options {
    /// A file that is the child's stdin; empty: a pipe.
    std::string input_file{};
    /// Variables in addition to the environment of this process, NAME=VALUE.
    std::vector<std::string> environment{};
    /// The child's stderr is a full pipe that nobody reads.
    bool stderr_is_full = false;
    /// The child's stdout has O_NONBLOCK, as a parent may leave it.
    bool stdout_is_non_blocking = false;
  };

  explicit scripted_daemon(std::vector<std::string> command) : scripted_daemon(command, {}) {}
  scripted_daemon(const std::vector<std::string>& command, const start_options& options);
  ~scripted_daemon();
  scripted_daemon(const scripted_daemon&) = delete;
  scripted_daemon& operator=(const scripted_daemon&) = delete;

  // The daemon's lines.
  void send(std::string_view line);
  /// Sends bytes without a newline. False: the child has closed its input.
  bool send_raw(std::string_view bytes);
  void initialize();
  /// Sends a batch with a record for each text, and sequence numbers counted up from `first`.
  void records(const std::vector<std::string>& texts, std::uint64_t first = 1);
  /// Sends such a batch, and expects its status as the next line.
  void process(const std::vector<std::string>& texts, std::uint64_t first = 1) {
    records(texts, first);
    expect_status("processRecords");
  }
  void lease_lost() { send(R"({"action":"leaseLost"})"); }
  void shard_ended() { send(R"({"action":"shardEnded"})"); }
  void shutdown_requested() { send(R"({"action":"shutdownRequested"})"); }
  /// Answers the last checkpoint line. An empty error tells that it is persisted.
  void answer(std::string_view error = {});
  void close_input() { input_.close_write_end(); }
  void close_output() { output_.close_read_end(); }
  /// Waits until the child has closed its input. False: it has not.
  [[nodiscard]] bool await_broken_input() const;

  // The child's lines.
  /// The next line that is not empty.
  std::string next_line();
  void expect(std::string_view line);
  void expect_status(std::string_view action);
  void expect_checkpoint(std::string_view sequence_number);
  void expect_null_checkpoint();
  /// Whether nothing comes within this time.
  bool is_silent_for(std::chrono::milliseconds time);
  /// So many bytes, or all up to the end.
  std::string read(std::size_t size);
  /// All text until the child closes its stdout, or writes nothing for this time.
  std::string rest(std::chrono::milliseconds silence = answer_limit);

  /// Does nothing once the child has ended.
  void signal_group(int signal) const;
  /// The child's exit status, or 1000 + the number of the signal that ended it.
  int wait_exit(std::chrono::milliseconds limit = std::chrono::seconds(60));
  /// Closes the input, and returns the exit status.
  int end() {
    close_input();
    return wait_exit();
  }
  /// Waits until the child has written `text` to stderr, and returns all of its stderr so far.
  std::string await_stderr(std::string_view text);
  [[nodiscard]] std::string stderr_so_far();
  /// Reads stderr until no process has it open.
  void await_end_of_stderr();
  /// Sends SIGKILL to the child alone, and waits for its end.
  void kill();
  [[nodiscard]] std::size_t resident_kib() const;
  [[nodiscard]] std::size_t peak_resident_kib() const;
  /// How often its threads have waited so far.
  [[nodiscard]] std::size_t wake_ups() const;

 private:
  bool fill(std::chrono::milliseconds limit);
  [[noreturn]] void fail(const std::string& what);
  bool drain_stderr();
  bool wait_for_stderr(std::chrono::steady_clock::time_point deadline) const;

  pid_t pid_ = -1;
  open_pipe input_;
  open_pipe output_;
  open_pipe error_;
  int read_error_ = -1;  ///< the end of error_ that is read; -1 while nobody does
  std::string last_checkpoint_ = R"("sequenceNumber":null)";  ///< the fields of the last checkpoint
  std::string buffer_;
  std::string stderr_;
  std::string dialogue_;
};

std::string base64(std::string_view bytes);
/// The line that scripted_daemon::records sends.
std::string records_line(const std::vector<std::string>& texts, std::uint64_t first = 1);

}  // namespace kclxx::test

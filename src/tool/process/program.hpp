// SPDX-License-Identifier: Apache-2.0
// Finds and starts the programs that the tool runs, or becomes.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "io/descriptor.hpp"
#include "tool/process/dialogue.hpp"  // IWYU pragma: export

namespace kclxx::tool {

enum class executable_state { ok, missing, not_executable, directory };

/// The path that execvp would start for a name; a name with a slash is its own path. std::nullopt:
/// there is no executable file of that name.
std::optional<std::string> find_program(const std::string& name);

/// The program at the path, or of that name in PATH.
executable_state look_at_program(const std::string& name);

/// "NAME=value" of each variable of this process.
std::vector<std::string> environment();
/// A variable of this process; empty also when it is not set.
std::string variable(const char* name);
/// The words of a text, which are separated by blanks.
std::vector<std::string> words_of(const std::string& text);

/// This process becomes that program, which is named by its path. It returns by an exception alone.
/// Errors: command_error, cancelled.
[[noreturn]] void exec(std::vector<std::string> command);

/// Sends SIGKILL to each child of this process, and to its group. Once the process is a subreaper,
/// the children of a child that has ended are its children, too.
void kill_children() noexcept;

/// The program cannot be started; what() names it and gives the reason.
class start_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A program, started as the daemon starts its children: with pipes on descriptors 0 and 1.
/// Descriptor 2 is inherited. All ends that this process holds are close-on-exec. The pipes have
/// the system's size, as the daemon's: how much fits decides when a child hangs.
///
/// The destructor kills the process if it still runs. When the command was cancelled, the child
/// first gets the end of its input, and `grace_time`. With a process group of its own this holds
/// for each process of the group, also when the child has ended before: they are killed and reaped.
/// Thread safety: the pipes may be used from different threads, everything else from one thread.
class child_process {
 public:
  using clock = std::chrono::steady_clock;
  enum class error_output { inherited, piped };
  enum class process_group { inherited, own };

  /// `command` is the program, looked up in PATH when it has no slash, and its arguments; it is not
  /// empty. The shell runs a script without #!, as for a child of the daemon.
  /// Errors: start_error.
  explicit child_process(const std::vector<std::string>& command,
                         error_output errors = error_output::inherited,
                         process_group group = process_group::inherited);
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// This process's ends of the pipes to the child's stdin, and from its stdout and, with
  /// error_output::piped, its stderr. Closing `input` ends the child's input.
  io::descriptor input;
  io::descriptor output;
  io::descriptor error;

  /// How long a child may take to leave when the command was cancelled, and its input has ended.
  static constexpr std::chrono::seconds grace_time{3};
  /// When the destructor kills a child of a cancelled command; by default after the grace time.
  std::optional<clock::time_point> killed_at;
  /// A child of a cancelled command gets the command's signal, too.
  bool gets_signal = false;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// A new descriptor that is readable for poll(2) once the child has ended.
  [[nodiscard]] io::descriptor ended() const;

  /// Sends a signal to the child, or to its whole group if it has one of its own. Does nothing once
  /// wait() has returned.
  void kill(int signal) const noexcept;
  /// Blocking: until the child has ended. The pipes stay as they are.
  child_exit wait();
  /// As wait(). std::nullopt: the child still runs at the deadline. A cancellation does not end it.
  std::optional<child_exit> wait_until(clock::time_point deadline);

 private:
  /// Errors: std::system_error, start_error.
  void watch_end();
  bool leaves_in_time();

  std::string program_;
  bool has_own_group_;
  pid_t pid_ = -1;
  io::descriptor end_;   ///< readable once the child has ended
  std::jthread waiter_;  ///< makes end_ readable where the system has no pidfd
  std::optional<child_exit> exit_;
};

struct program_result {
  child_exit end;
  std::string output{};
  std::string error{};
};
enum class program_output { kept, to_stderr };

/// Runs a program without input to its end. Its stdout and stderr are kept. With to_stderr its
/// stderr is that of this process, and its stdout is copied there at its end. A signal that cancels
/// the command ends the program first. Blocking: until the program has ended, and no process holds
/// its output. Errors: start_error, cancelled.
program_result run_program(const std::vector<std::string>& command,
                           program_output where = program_output::kept);

}  // namespace kclxx::tool

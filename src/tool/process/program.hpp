// SPDX-License-Identifier: Apache-2.0
// Finds programs and starts them: all that the tool starts, or becomes.
#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <thread>
#include <vector>

#include "io/descriptor.hpp"
#include "tool/process/dialogue.hpp"  // IWYU pragma: export

namespace kclxx::tool {

enum class executable_state { ok, missing, not_executable, directory };

/// The path that execvp would start for a name; a name with a slash is its own. Nothing: there is
/// no executable file of that name.
std::optional<std::string> find_program(const std::string& name);

/// The program at the path, or of that name in PATH.
executable_state look_at_program(const std::string& name);

/// "NAME=value" of each variable of this process.
std::vector<std::string> environment();
/// A variable of this process; empty also when it is not set.
std::string variable(const char* name);
/// What is between blanks.
std::vector<std::string> words_of(const std::string& text);

/// This process becomes that program, which is named by its path.
/// Errors: command_error, cancelled; there is no other return.
[[noreturn]] void exec(std::vector<std::string> command);

/// SIGKILL to each child of this process, and to its group. A child of a child that has ended is
/// one too, once the process is a subreaper.
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
/// The destructor kills the process if it still runs. When the command was
/// cancelled the child gets the end of its input first, and 3 s.
/// With a process group of its own this includes whatever the child has started in that group,
/// also once the child has ended: what is left then is killed and reaped.
/// Thread safety: the pipes may be used from different threads; the rest from one.
class child_process {
 public:
  using clock = std::chrono::steady_clock;
  enum class error_output { inherited, piped };
  enum class process_group { inherited, own };

  /// `command` is the program, looked up in PATH when it has no slash, and its arguments. A script
  /// without #! is run by the shell, as Java's ProcessBuilder does it.
  /// Errors: start_error.
  explicit child_process(const std::vector<std::string>& command,
                         error_output errors = error_output::inherited,
                         process_group group = process_group::inherited);
  ~child_process();
  child_process(const child_process&) = delete;
  child_process& operator=(const child_process&) = delete;

  /// Our end of the pipe to its stdin, of the one from its stdout, and with error_output::piped of
  /// the one from its stderr. Close input for the end of its input.
  io::descriptor input;
  io::descriptor output;
  io::descriptor error;

  /// For a child whose input ended because the command was cancelled.
  static constexpr std::chrono::seconds grace_time{3};
  /// When this object's end kills such a child; by default after the grace time.
  std::optional<clock::time_point> killed_at;
  /// Such a child gets the command's signal, too.
  bool gets_signal = false;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// A descriptor of its own, readable for poll(2) once the child has ended.
  [[nodiscard]] io::descriptor ended() const;

  /// Sends a signal, to the whole group when it has its own; nothing when the child is known to
  /// have ended.
  void kill(int signal) const noexcept;
  /// Blocking: until the child has ended. The pipes stay as they are.
  child_exit wait();
  /// std::nullopt: it still runs at the deadline. It is not cancelled.
  std::optional<child_exit> wait_until(clock::time_point deadline);

 private:
  /// Errors: std::system_error, start_error.
  void watch_end();
  bool leaves_in_time();

  std::string program_;
  bool has_own_group_;
  pid_t pid_ = -1;
  io::descriptor end_;   ///< readable once the child has ended
  std::jthread waiter_;  ///< where the system has no pidfd: what makes end_ readable
  std::optional<child_exit> exit_;
};

struct program_result {
  child_exit end;
  std::string output{};
  std::string error{};
};
enum class program_output { kept, to_stderr };

/// Runs a program without input to its end. What it prints is kept, or goes to stderr: its stderr
/// at once. SIGINT, SIGTERM and SIGHUP end it first, and then this process.
/// Blocking: until the program has ended, and nobody holds its output any more.
/// Errors: start_error, cancelled.
program_result run_program(const std::vector<std::string>& command,
                           program_output where = program_output::kept);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace kclxx::tool {

/// The exit statuses of the tool; docs/messages.md has them for users. `kclxx capture` passes on
/// its child's status instead, once that runs, and `kclxx daemon run` the daemon's.
enum class exit_status : int {
  /// Done, and nothing was found.
  ok = 0,
  /// The child broke the protocol, its answers differ, or a check found errors; of `local`: the
  /// emulators ran already, or do not run. What was printed names each: mend the child or the file.
  breach = 1,
  /// The command line cannot be understood. See --help.
  usage = 2,
  /// The child ended when it should not have, or took too long. See its last lines on stderr.
  child_failed = 3,
  /// A transcript is damaged, not one, or lacks what an option needs. Record it again, or leave the
  /// option out.
  bad_transcript = 4,
  /// A file or a program cannot be opened, made or started. The message has the system's reason.
  setup_failed = 5,
};

/// Ends a command. what() becomes one line on stderr: "kclxx capture: ...".
class command_error : public std::runtime_error {
 public:
  command_error(exit_status status, const std::string& what)
      : std::runtime_error(what), status_(status) {}
  [[nodiscard]] exit_status status() const noexcept { return status_; }

 private:
  exit_status status_;
};

/// Ends a command with exit_status::setup_failed.
[[noreturn]] void cannot_set_up(const std::string& what);
/// The same, for a file: "PATH cannot be DONE: " and errno's reason.
[[noreturn]] void cannot_set_up(const std::filesystem::path& path, const std::string& done);

}  // namespace kclxx::tool

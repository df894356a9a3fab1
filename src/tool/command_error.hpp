// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace kclxx::tool {

/// The exit statuses of the tool: docs/messages.md has the cause and the remedy of each.
enum class command_status : int {
  ok = 0,
  finding = 1,
  usage = 2,
  child_failed = 3,
  bad_transcript = 4,
  setup_failed = 5,
};

/// Ends a command. what() becomes one line on stderr: "kclxx capture: ...".
class command_error : public std::runtime_error {
 public:
  command_error(command_status status, const std::string& message)
      : std::runtime_error(message), status_(status) {}
  [[nodiscard]] command_status status() const noexcept { return status_; }

 private:
  command_status status_;
};

/// Ends a command with command_status::setup_failed.
[[noreturn]] inline void cannot_set_up(const std::string& message) {
  throw command_error(command_status::setup_failed, message);
}
/// Ends a command with command_status::setup_failed and "PATH cannot be DONE: REASON". The reason
/// is that of errno.
[[noreturn]] inline void cannot_set_up(const std::filesystem::path& path, const std::string& done) {
  cannot_set_up(path.string() + " cannot be " + done + ": " + std::strerror(errno));
}

}  // namespace kclxx::tool

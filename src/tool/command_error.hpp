// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tool/exit_status.hpp"

namespace kclxx::tool {

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

#include "io/descriptor.hpp"

namespace kclxx::tool {

/// The program cannot be started; what() names it and gives the reason.
class start_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// This process becomes that program, which is named by its path.
/// Errors: command_error; there is no other return.
[[noreturn]] void exec(std::vector<std::string> command);

/// SIGKILL to each child of this process, and to its group. A child of a child that has ended is
/// one too, once the process is a subreaper.
void kill_children() noexcept;

/// Starts programs: all that the tool starts and does not become.
class spawner {
 public:
  spawner();
  ~spawner();
  spawner(const spawner&) = delete;
  spawner& operator=(const spawner&) = delete;

  /// The program's descriptor `target` is `source`, which stays open until start().
  void put(int source, int target);
  void put_null_device(int target);
  /// It is the first of a new process group.
  void give_own_group();
  /// In place of this process's environment: NAME=value.
  void set_environment(std::vector<std::string> environment) {
    environment_ = std::move(environment);
  }

  /// `command` is the program, looked up in PATH when it has no slash, and its arguments. A script
  /// without #! is run by the shell, as Java's ProcessBuilder does it. Errors: start_error.
  pid_t start(std::vector<std::string> command);

 private:
  int try_start(pid_t& pid, std::vector<std::string>& command);

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
  std::optional<std::vector<std::string>> environment_;
};

}  // namespace kclxx::tool

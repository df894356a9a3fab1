// SPDX-License-Identifier: Apache-2.0
#include "tool/process/spawn.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <unistd.h>

#include "tool/command_error.hpp"
#include "tool/process/program_search.hpp"

namespace kclxx::tool {

namespace {

/// As exec(3) and posix_spawn(3) take them. Lifetime: that of the texts, which stay as they are.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers(texts.size() + 1);  // the last one stays null
  std::transform(texts.begin(), texts.end(), pointers.begin(),
                 [](std::string& text) { return text.data(); });
  return pointers;
}

}  // namespace

void exec(std::vector<std::string> command) {
  ::execv(command.front().c_str(), pointers_to(command).data());
  cannot_set_up(command.front(), "started");
}

void kill_children() noexcept {
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/task", error), end; !error && at != end;
       at.increment(error)) {
    std::ifstream children(at->path() / "children");
    for (pid_t child = 0; children >> child;) {
      ::kill(-child, SIGKILL);
      ::kill(child, SIGKILL);
    }
  }
}

spawner::spawner() {
  ::posix_spawn_file_actions_init(&actions_);
  ::posix_spawnattr_init(&attributes_);
}

spawner::~spawner() {
  ::posix_spawnattr_destroy(&attributes_);
  ::posix_spawn_file_actions_destroy(&actions_);
}

void spawner::put(int source, int target) {
  ::posix_spawn_file_actions_adddup2(&actions_, source, target);
}

void spawner::put_null_device(int target) {
  ::posix_spawn_file_actions_addopen(&actions_, target, "/dev/null", O_RDWR, 0);
}

void spawner::give_own_group() {
  ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP);
  ::posix_spawnattr_setpgroup(&attributes_, 0);
}

pid_t spawner::start(std::vector<std::string> command) {
  if (command.empty()) throw start_error("no program was named");
  const std::string program = command.front();
  pid_t pid = -1;
  int error = try_start(pid, command);
  if (error == ENOEXEC) {
    command.front() = find_program(program).value_or(program);  // the shell does not look in PATH
    command.insert(command.begin(), "/bin/sh");
    error = try_start(pid, command);
  }
  if (error == 0) return pid;
  throw start_error((program.empty() ? "''" : program) +
                    " cannot be started: " + std::strerror(error));
}

int spawner::try_start(pid_t& pid, std::vector<std::string>& command) {
  std::vector<char*> environment;
  if (environment_) environment = pointers_to(*environment_);
  return ::posix_spawnp(&pid, command.front().c_str(), &actions_, &attributes_,
                        pointers_to(command).data(), environment_ ? environment.data() : environ);
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/process/run_program.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "io/descriptor.hpp"
#include "tool/command_error.hpp"
#include "tool/process/spawn.hpp"

namespace kclxx::tool {

namespace {

// The program that runs, and the signal that was passed on to it.
volatile std::sig_atomic_t running = 0;
volatile std::sig_atomic_t passed_on = 0;

void pass_on(int signal) {
  passed_on = signal;
  if (running > 0) ::kill(running, signal);
}

/// A signal to this process ends the program first, which would go on with what nobody waits for.
int wait_for(pid_t pid, const std::string& name) {
  int status = 0;
  while (::waitpid(pid, &status, 0) == -1) {
    if (errno != EINTR) cannot_set_up(name, "waited for");
  }
  running = 0;
  if (passed_on != 0) {
    std::signal(passed_on, SIG_DFL);
    ::raise(passed_on);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// What is ignored stays so: somebody wants it.
class signals_for_the_program {
 public:
  signals_for_the_program() {
    for (std::size_t i = 0; i < those.size(); ++i) {
      before_.at(i) = std::signal(those.at(i), pass_on);
      if (before_.at(i) == SIG_IGN) std::signal(those.at(i), SIG_IGN);
    }
  }
  ~signals_for_the_program() {
    for (std::size_t i = 0; i < those.size(); ++i) std::signal(those.at(i), before_.at(i));
  }
  signals_for_the_program(const signals_for_the_program&) = delete;
  signals_for_the_program& operator=(const signals_for_the_program&) = delete;

 private:
  static constexpr std::array<int, 3> those{SIGINT, SIGTERM, SIGHUP};
  std::array<void (*)(int), 3> before_{};
};

/// Our end of the pipe for the program goes away first.
void hand_over(io::descriptor ours, const io::descriptor& read_end, const output_handler& on_output,
               pid_t pid) {
  ours.close();
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = ::read(read_end.get(), piece.data(), piece.size());
    if (n == -1 && errno == EINTR) continue;
    if (n <= 0) return;
    on_output({piece.data(), static_cast<std::size_t>(n)}, pid);
  }
}

}  // namespace

std::vector<std::string> environment() {
  std::vector<std::string> all;
  for (char** one = environ; *one != nullptr; ++one) all.emplace_back(*one);
  return all;
}

int run_program(const std::vector<std::string>& command, std::vector<std::string> variables,
                const output_handler& on_output) {
  spawner starts;
  starts.put_null_device(STDIN_FILENO);
  std::array<int, 2> ends{-1, -1};
  if (on_output && ::pipe2(ends.data(), O_CLOEXEC) == -1) cannot_set_up("a pipe", "made");
  const io::descriptor read_end(ends[0]);
  io::descriptor write_end(ends[1]);
  const int target = on_output ? write_end.get() : STDERR_FILENO;
  starts.put(target, STDOUT_FILENO);
  starts.put(target, STDERR_FILENO);
  starts.set_environment(std::move(variables));
  const signals_for_the_program signals;
  const pid_t pid = starts.start(command);
  running = pid;
  if (passed_on != 0) ::kill(pid, passed_on);
  if (on_output) hand_over(std::move(write_end), read_end, on_output, pid);
  return wait_for(pid, command.front());
}

}  // namespace kclxx::tool

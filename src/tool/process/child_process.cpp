// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include "tool/process/exec.hpp"
#include "tool/process/interruption.hpp"
#include "tool/process/poll.hpp"

namespace kclxx::cli {

namespace {

// Not more: a user's pipes may have 64 MiB in all, and when that is used up every new pipe of the
// user has 8 KiB.
constexpr int pipe_size = 1 << 18;

// For a child whose input ended because this process was interrupted.
constexpr std::chrono::seconds grace_time(3);

[[noreturn]] void fail(const std::string& program, int error) {
  throw start_error((program.empty() ? "''" : program) +
                    " cannot be started: " + std::strerror(error));
}

struct pipe_ends {
  descriptor read;
  descriptor write;
};

// Above 2, so that no end is overwritten while the child's 0 to 2 are put in place.
descriptor above_standard(int fd) {
  descriptor low(fd);
  return descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

pipe_ends make_pipe(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) fail(program, errno);
  pipe_ends made{above_standard(ends[0]), above_standard(ends[1])};
  if (!made.read.is_open() || !made.write.is_open()) fail(program, errno);
  ::fcntl(made.write.get(), F_SETPIPE_SZ, pipe_size);  // refused beyond a user's share: as it is
  return made;
}

class spawn_actions {
 public:
  spawn_actions() { ::posix_spawn_file_actions_init(&actions_); }
  ~spawn_actions() { ::posix_spawn_file_actions_destroy(&actions_); }
  spawn_actions(const spawn_actions&) = delete;
  spawn_actions& operator=(const spawn_actions&) = delete;

  void put(const descriptor& from, int to) {
    ::posix_spawn_file_actions_adddup2(&actions_, from.get(), to);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

int spawn(pid_t& pid, std::vector<std::string> command, const spawn_actions& actions) {
  const std::vector<char*> arguments = pointers_to(command);
  return ::posix_spawnp(&pid, arguments[0], actions.get(), nullptr, arguments.data(), environ);
}

}  // namespace

std::string to_string(const child_exit& how) {
  if (how.signal == 0) return "exit status " + std::to_string(how.status);
  const char* name = ::strsignal(how.signal);
  return "signal " + std::to_string(how.signal) + " (" + (name != nullptr ? name : "unknown") + ")";
}

child_process::child_process(const std::vector<std::string>& command, error_output error_goes) {
  if (command.empty()) throw start_error("no program was named");
  program_ = command.front();
  const std::string& program = program_;
  spawn_actions actions;
  pipe_ends in = make_pipe(program);
  pipe_ends out = make_pipe(program);
  pipe_ends err;
  actions.put(in.read, STDIN_FILENO);
  actions.put(out.write, STDOUT_FILENO);
  if (error_goes == error_output::piped) {
    err = make_pipe(program);
    actions.put(err.write, STDERR_FILENO);
  }
  int result = spawn(pid_, command, actions);
  if (result == ENOEXEC) {  // a script without its first line; Java's ProcessBuilder does the same
    std::vector<std::string> by_shell = command;
    by_shell.insert(by_shell.begin(), "/bin/sh");
    result = spawn(pid_, by_shell, actions);
  }
  if (result != 0) fail(program, result);
  // By its number: <sys/pidfd.h> is not there before glibc 2.36.
  pidfd_ = descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  if (!pidfd_.is_open()) {
    const int error_number = errno;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    fail(program, error_number);
  }
  input = std::move(in.write);
  output = std::move(out.read);
  error = std::move(err.read);
}

child_process::~child_process() {
  if (exit_) return;
  if (interruption() != 0 && leaves_by_itself()) return;
  kill(SIGKILL);
  wait();
}

// As if this process had ended by the signal.
bool child_process::leaves_by_itself() {
  input.close();
  output.close();
  error.close();
  if (wait_until(clock::now() + grace_time, -1)) return true;
  std::cerr << "kclxx: " + program_ + ", process " + std::to_string(pid_) +
                   ", went on after the end of its input, and is killed\n"
            << std::flush;
  return false;
}

void child_process::kill(int signal) const noexcept {
  if (!exit_) ::kill(pid_, signal);
}

child_exit child_process::wait() {
  if (!exit_) {
    siginfo_t info{};
    while (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED) == -1) {
      if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitid");
    }
    exit_ =
        info.si_code == CLD_EXITED ? child_exit{info.si_status, 0} : child_exit{0, info.si_status};
  }
  return *exit_;
}

std::optional<child_exit> child_process::wait_until(clock::time_point deadline) {
  return wait_until(deadline, interruption_descriptor());
}

// `other`: a descriptor that ends the waiting, too.
std::optional<child_exit> child_process::wait_until(clock::time_point deadline, int other) {
  while (!exit_) {
    pollfd ended[] = {{pidfd_.get(), POLLIN, 0}, {other, POLLIN, 0}};
    if (!poll_until(ended, deadline)) return std::nullopt;
    if (ended[0].revents != 0) return wait();
    throw_if_interrupted();
  }
  return exit_;
}

}  // namespace kclxx::cli

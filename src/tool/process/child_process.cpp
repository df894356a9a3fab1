// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "io/process_identity.hpp"
#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

[[noreturn]] void fail(const std::string& program, int error) {
  throw start_error(program + " cannot be started: " + std::strerror(error));
}

struct pipe_ends {
  io::descriptor read;
  io::descriptor write;
};

// Above 2, so that no end is overwritten while the child's 0 to 2 are put in place.
io::descriptor above_standard(int fd) {
  io::descriptor low(fd);
  return io::descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

pipe_ends make_pipe(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) fail(program, errno);
  pipe_ends made{above_standard(ends[0]), above_standard(ends[1])};
  if (!made.read.is_open() || !made.write.is_open()) fail(program, errno);
  return made;
}

}  // namespace

std::string to_string(const child_exit& exit) {
  if (exit.signal == 0) return "exit status " + std::to_string(exit.status);
  const char* name = ::strsignal(exit.signal);
  return "signal " + std::to_string(exit.signal) + " (" + (name != nullptr ? name : "unknown") +
         ")";
}

child_process::child_process(const std::vector<std::string>& command, error_output errors,
                             process_group group)
    : program_(command.empty() ? "" : command.front()),
      has_own_group_(group == process_group::own) {
  spawner starts;
  pipe_ends in = make_pipe(program_);
  pipe_ends out = make_pipe(program_);
  pipe_ends error_pipe;
  starts.put(in.read.get(), STDIN_FILENO);
  starts.put(out.write.get(), STDOUT_FILENO);
  if (errors == error_output::piped) {
    error_pipe = make_pipe(program_);
    starts.put(error_pipe.write.get(), STDERR_FILENO);
  }
  if (has_own_group_) {
    starts.give_own_group();
    // What outlives the child that started it becomes a child of this process, which reaps it.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }
  pid_ = starts.start(command);
  pidfd_ = io::open_process(static_cast<std::uint64_t>(pid_));
  if (!pidfd_.is_open()) {
    const int error_number = errno;
    kill(SIGKILL);
    wait();
    fail(program_, error_number);
  }
  input = std::move(in.write);
  output = std::move(out.read);
  error = std::move(error_pipe.read);
}

child_process::~child_process() {
  if (exit_) return;
  if (cancellation_signal() != 0 && leaves_in_time()) return;
  kill(SIGKILL);
  wait();
}

// As if this process had ended by the signal.
bool child_process::leaves_in_time() {
  input.close();
  output.close();
  error.close();
  if (wait_until(killed_at.value_or(clock::now() + grace_time))) return true;
  std::cerr << "kclxx: " + program_ + ", process " + std::to_string(pid_) +
                   ", did not leave after the end of its input, and is killed\n"
            << std::flush;
  return false;
}

io::descriptor child_process::ended() const {
  return io::descriptor(::fcntl(pidfd_.get(), F_DUPFD_CLOEXEC, 3));
}

void child_process::kill(int signal) const noexcept {
  if (!exit_) ::kill(has_own_group_ ? -pid_ : pid_, signal);
}

child_exit child_process::wait() {
  // Until it is reaped, its number and its group's are nobody else's.
  siginfo_t of_child{};
  while (!exit_ && ::waitid(P_PID, static_cast<id_t>(pid_), &of_child, WEXITED | WNOWAIT) == -1) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitid");
  }
  if (exit_) return *exit_;
  if (has_own_group_) kill(SIGKILL);
  siginfo_t reaped{};
  const idtype_t whom = has_own_group_ ? P_PGID : P_PID;
  while (::waitid(whom, static_cast<id_t>(pid_), &reaped, WEXITED) == 0 || errno == EINTR) {
  }
  exit_ = of_child.si_code == CLD_EXITED ? child_exit{of_child.si_status, 0}
                                         : child_exit{0, of_child.si_status};
  return *exit_;
}

std::optional<child_exit> child_process::wait_until(clock::time_point deadline) {
  if (exit_) return exit_;
  boost::asio::io_context loop(1);
  boost::asio::posix::stream_descriptor end(loop, ended().release());
  bool has_ended = false;
  end.async_wait(end.wait_read, [&](boost::system::error_code) { has_ended = true; });
  loop.run_until(deadline);
  loop.poll();
  if (!has_ended) return std::nullopt;
  return wait();
}

}  // namespace kclxx::tool

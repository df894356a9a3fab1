// SPDX-License-Identifier: Apache-2.0
#include "tool/process/program.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <spawn.h>
#include <sstream>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>

#include "io/process_identity.hpp"
#include "io/program_path.hpp"
#include "tool/command_error.hpp"
#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

using boost::asio::posix::stream_descriptor;

executable_state look_at_path(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == -1) return executable_state::missing;
  if (S_ISDIR(status.st_mode)) return executable_state::directory;
  return ::access(path.c_str(), X_OK) == 0 ? executable_state::ok
                                           : executable_state::not_executable;
}

/// The texts as exec(3) and posix_spawn(3) take them. Lifetime: until the texts change.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers(texts.size() + 1);  // the last one stays null
  std::transform(texts.begin(), texts.end(), pointers.begin(),
                 [](std::string& text) { return text.data(); });
  return pointers;
}

[[noreturn]] void fail(const std::string& program, int error) {
  throw start_error((program.empty() ? "''" : program) +
                    " cannot be started: " + std::strerror(error));
}

struct pipe_ends {
  io::descriptor read;
  io::descriptor write;
};

// The number is above 2, so that the end is not overwritten while the child's 0 to 2 are put in
// place.
io::descriptor above_standard(int fd) {
  io::descriptor low(fd);
  return io::descriptor(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

pipe_ends make_pipe(const std::string& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) fail(program, errno);
  pipe_ends pipe{above_standard(ends[0]), above_standard(ends[1])};
  if (!pipe.read.is_open() || !pipe.write.is_open()) fail(program, errno);
  return pipe;
}

/// `standard`: what becomes the program's descriptors 0, 1 and 2; -1: it inherits that of this
/// process. Errors: start_error.
pid_t start(std::vector<std::string> command, const std::array<int, 3>& standard,
            bool has_own_group) {
  const std::string program = command.front();
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  for (int fd = 0; fd < 3; ++fd) {
    const int source = standard.at(static_cast<std::size_t>(fd));
    if (source != -1) ::posix_spawn_file_actions_adddup2(&actions, source, fd);
  }
  if (has_own_group) {  // of which it becomes the leader
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    ::posix_spawnattr_setpgroup(&attributes, 0);
  }
  pid_t pid = -1;
  const auto try_start = [&] {
    return ::posix_spawnp(&pid, command.front().c_str(), &actions, &attributes,
                          pointers_to(command).data(), environ);
  };
  int error = try_start();
  if (error == ENOEXEC) {
    command.front() = find_program(program).value_or(program);  // the shell does not look in PATH
    command.insert(command.begin(), "/bin/sh");
    error = try_start();
  }
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) fail(program, error);
  return pid;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  std::array<char, PATH_MAX> place{};
  const char* const path = io::find_program(name.c_str(), place);
  return path == nullptr ? std::nullopt : std::optional<std::string>(path);
}

executable_state look_at_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return look_at_path(name);
  return find_program(name) ? executable_state::ok : executable_state::missing;
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.emplace_back(*variable);
  }
  return variables;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

void exec(std::vector<std::string> command) {
  throw_if_cancelled();
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

child_process::child_process(const std::vector<std::string>& command, error_output errors,
                             process_group group)
    : has_own_group_(group == process_group::own) {
  program_ = command.front();
  pipe_ends in = make_pipe(program_);
  pipe_ends out = make_pipe(program_);
  pipe_ends error_pipe;
  if (errors == error_output::piped) error_pipe = make_pipe(program_);
  // A process that outlives the child that has started it becomes a child of this process, and is
  // reaped here.
  if (has_own_group_) ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  pid_ = start(command, {in.read.get(), out.write.get(), error_pipe.write.get()}, has_own_group_);
  try {
    watch_end();
  } catch (const std::system_error& error) {
    kill(SIGKILL);
    wait();
    fail(program_, error.code().value());
  }
  input = std::move(in.write);
  output = std::move(out.read);
  error = std::move(error_pipe.read);
}

void child_process::watch_end() {
  end_ = io::open_process(static_cast<std::uint64_t>(pid_));
  if (end_.is_open()) return;
  // There is no pidfd before Linux 5.3 and under old seccomp profiles. A thread then waits for the
  // child and closes the pipe's other end. wait() joins it before it reaps the child, so that the
  // thread never waits for another process of the same number.
  pipe_ends ends = make_pipe(program_);
  end_ = std::move(ends.read);
  waiter_ = std::jthread([pid = pid_, closed_at_end = std::move(ends.write)] {
    siginfo_t ignored{};
    while (::waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED | WNOWAIT) == -1 &&
           errno == EINTR) {
    }
  });
}

child_process::~child_process() {
  if (exit_) return;
  if (cancellation_signal() != 0 && leaves_in_time()) return;
  kill(SIGKILL);
  wait();
}

// Does to the child what the end of this process by the signal would do.
bool child_process::leaves_in_time() {
  if (gets_signal) kill(cancellation_signal());
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
  io::descriptor end(::fcntl(end_.get(), F_DUPFD_CLOEXEC, 3));
  if (!end.is_open()) fail(program_, errno);
  return end;
}

void child_process::kill(int signal) const noexcept {
  if (!exit_) ::kill(has_own_group_ ? -pid_ : pid_, signal);
}

child_exit child_process::wait() {
  // Until the child is reaped, no other process gets its number, nor that of its group.
  siginfo_t child_end{};
  while (!exit_ && ::waitid(P_PID, static_cast<id_t>(pid_), &child_end, WEXITED | WNOWAIT) == -1) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitid");
  }
  if (exit_) return *exit_;
  if (waiter_.joinable()) waiter_.join();
  if (has_own_group_) kill(SIGKILL);
  siginfo_t reaped{};
  const idtype_t whom = has_own_group_ ? P_PGID : P_PID;
  while (::waitid(whom, static_cast<id_t>(pid_), &reaped, WEXITED) == 0 || errno == EINTR) {
  }
  exit_ = child_end.si_code == CLD_EXITED ? child_exit{child_end.si_status, 0}
                                          : child_exit{0, child_end.si_status};
  return *exit_;
}

std::optional<child_exit> child_process::wait_until(clock::time_point deadline) {
  if (exit_) return exit_;
  boost::asio::io_context loop(1);
  stream_descriptor end(loop, ended().release());
  bool has_ended = false;
  end.async_wait(end.wait_read, [&](boost::system::error_code) { has_ended = true; });
  loop.run_until(deadline);
  loop.poll();
  if (!has_ended) return std::nullopt;
  return wait();
}

program_result run_program(const std::vector<std::string>& command, program_output where) {
  using error_output = child_process::error_output;
  install_signal_handlers(ignored_signals::stay_ignored);
  program_result result;
  child_process program(
      command, where == program_output::kept ? error_output::piped : error_output::inherited);
  program.gets_signal = true;
  program.input.close();
  cancellable_loop loop;
  stream_descriptor end(loop.context(), program.ended().release());
  int open = 1;
  const auto read_all = [&](stream_descriptor& from, std::string& to) {
    ++open;
    async_read(from, boost::asio::dynamic_buffer(to),
               [&open](boost::system::error_code, std::size_t) { --open; });
  };
  end.async_wait(end.wait_read, [&open](boost::system::error_code) { --open; });
  stream_descriptor output(loop.context(), program.output.release());
  read_all(output, result.output);
  stream_descriptor error(loop.context());
  if (program.error.is_open()) {
    error.assign(program.error.release());
    read_all(error, result.error);
  }
  while (open > 0) loop.run_one(child_process::clock::time_point::max());
  if (where == program_output::to_stderr) std::cerr << result.output << std::flush;
  result.end = program.wait();
  return result;
}

}  // namespace kclxx::tool

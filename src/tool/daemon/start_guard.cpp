// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/start_guard.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <iostream>
#include <string>
#include <string_view>
#include <sys/prctl.h>
#include <unistd.h>

#include "io/descriptor.hpp"
#include "tool/command_error.hpp"

namespace kclxx::tool {

namespace {

/// So much of a line is looked at, without waiting for the rest of it.
constexpr std::size_t head_size = 1024;

[[noreturn]] void end_java(pid_t java) {
  // As process 1 it gets no SIGKILL from its own namespace.
  ::kill(java, java == 1 ? SIGTERM : SIGKILL);
  for (;;)
    ::pause();  // what is not read keeps Java in the call that logs it, before it leaves with 0
}

class failure_reader {
 public:
  explicit failure_reader(pid_t java) : java_(java) {}

  void take(std::string_view text) {
    for (const char c : text) {
      if (c != '\n') {
        if (head_.size() < head_size) head_ += c;
        if (head_.size() < head_size || is_judged_) continue;
      }
      if (!is_judged_) judge();
      is_judged_ = c != '\n';
      if (!is_judged_) head_.clear();
    }
  }

 private:
  void judge() {
    const auto failure = explain(head_);
    if (!failure) return;
    if (failure->what != last_) {
      std::cerr << "kclxx daemon run: " + failure->what + "\n" << std::flush;
    }
    last_ = failure->what;
    if (failure->is_end) end_java(java_);
  }

  pid_t java_;
  std::string head_;
  bool is_judged_ = false;
  std::string last_;
};

[[noreturn]] void guard(int failures, pid_t java) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_BLOCK, &all, nullptr);  // of all signals to the group: it leaves with Java
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != java) ::_exit(0);
  failure_reader reader(java);
  std::array<char, 4096> chunk{};
  for (;;) {
    const ssize_t count = ::read(failures, chunk.data(), chunk.size());
    if (count <= 0) ::_exit(0);
    reader.take({chunk.data(), static_cast<std::size_t>(count)});
  }
}

/// What was thrown, without the place; blank when the line has nothing of it.
std::string cause_in(std::string_view line) {
  constexpr std::string_view begin = " java.lang.RuntimeException: ";
  const auto at = line.find(begin);
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + begin.size());
  return ": " + std::string(line.substr(0, line.find(" at ")));
}

}  // namespace

std::optional<start_failure> explain(std::string_view line) {
  const bool is_end = line.starts_with("Unable to initialize after");
  if (line.find("leaseCounter is marked non-null but is null") != std::string_view::npos) {
    return start_failure{
        "the lease table has rows of KCL 3, which KCL 2 cannot read, so this worker takes no "
        "shards: use --kcl 3, or remove these rows (docs/kcl-versions.md#back-to-kcl-2)",
        is_end};
  }
  if (!is_end) return std::nullopt;
  return start_failure{"the worker could not be initialized" + cause_in(line), true};
}

void start_guard() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) {
    cannot_set_up(std::string("a pipe cannot be made: ") + std::strerror(errno));
  }
  io::descriptor from_java(ends[0]);
  const io::descriptor low(ends[1]);
  // The smallest that there is: a line of the failures does not fit in.
  ::fcntl(from_java.get(), F_SETPIPE_SZ, 1);
  const int to_guard = ::fcntl(low.get(), F_DUPFD, 3);  // stays open across exec
  const pid_t java = ::getpid();
  const pid_t child = to_guard == -1 ? -1 : ::fork();
  if (child == -1) cannot_set_up(std::string("no guard can be started: ") + std::strerror(errno));
  if (child == 0) {
    ::close(to_guard);
    ::close(low.get());
    guard(from_java.get(), java);
  }
  ::setenv(failures_variable, ("/proc/self/fd/" + std::to_string(to_guard)).c_str(), 1);
}

}  // namespace kclxx::tool

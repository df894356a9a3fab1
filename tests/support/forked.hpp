// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

#include "support/text.hpp"

namespace kclxx::test {

/// How a forked copy of the test ended, and what it wrote.
struct forked_result {
  int status = -1;  ///< of exit, or 128 + the signal's number
  std::string out;
  std::string err;
};

/// A forked copy of the test in which `body` runs, for what changes the whole process. Its stdin is
/// `input` (-1: an empty pipe that stays open); its stdout and stderr are collected, together at
/// most what fits in a pipe. The copy leaves by _exit with what `body` returns, 99 when it throws.
class forked_copy {
 public:
  explicit forked_copy(const std::function<int()>& body, int input = -1) {
    for (auto& ends : pipes_) {
      if (::pipe(ends.data()) == -1) throw std::runtime_error("pipe");
    }
    // Or what the test runner has printed and not flushed would be the child's, too.
    std::cout.flush();
    std::fflush(stdout);
    pid_ = ::fork();
    if (pid_ == -1) throw std::runtime_error("fork");
    if (pid_ != 0) return;
    ::dup2(input == -1 ? pipes_[0][0] : input, STDIN_FILENO);
    ::dup2(pipes_[1][1], STDOUT_FILENO);
    ::dup2(pipes_[2][1], STDERR_FILENO);
    for (const auto& ends : pipes_) {
      for (const int fd : ends) ::close(fd);
    }
    try {
      ::_exit(body());
    } catch (...) {
      ::_exit(99);
    }
  }
  ~forked_copy() {
    for (const auto& ends : pipes_) {
      for (const int fd : ends) ::close(fd);
    }
  }
  forked_copy(const forked_copy&) = delete;
  forked_copy& operator=(const forked_copy&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Waits until the copy has ended. Returns its status. Others may still hold its output.
  [[nodiscard]] int wait() const {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Waits until the copy has ended and no process holds its output: its status and what it wrote.
  [[nodiscard]] forked_result result() {
    forked_result result;
    result.status = wait();
    for (auto& ends : pipes_) ::close(std::exchange(ends[1], -1));
    result.out = read_all(pipes_[1][0]);
    result.err = read_all(pipes_[2][0]);
    return result;
  }

 private:
  std::array<std::array<int, 2>, 3> pipes_{};
  pid_t pid_ = -1;
};

inline forked_result in_forked_copy(const std::function<int()>& body, int input = -1) {
  return forked_copy(body, input).result();
}

/// The exit status of a copy: which condition does not hold, from 1 on; 0: all do.
inline int first_false(std::initializer_list<bool> conditions) {
  const auto* const found = std::find(conditions.begin(), conditions.end(), false);
  return found == conditions.end() ? 0 : static_cast<int>(found - conditions.begin()) + 1;
}

}  // namespace kclxx::test

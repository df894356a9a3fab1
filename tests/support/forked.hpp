// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
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
  int status = -1;  ///< the exit status, or 128 + the number of the signal that ended it
  std::string out;
  std::string err;
};

/// A forked copy of the test, in which `body` may change the whole process. Its stdin is `input`
/// (-1: an empty pipe that stays open). Its stdout and stderr are collected; each must fit into a
/// pipe. The copy leaves by _exit with the result of `body`, or with 99 when that throws. The
/// destructor kills a copy that still runs.
class forked_copy {
 public:
  explicit forked_copy(const std::function<int()>& body, int input = -1) {
    for (auto& ends : pipes_) {
      if (::pipe(ends.data()) == -1) throw std::runtime_error("pipe");
    }
    // Otherwise the copy would print once more what the test runner has not flushed.
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
    if (pid_ != -1) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const auto& ends : pipes_) {
      for (const int fd : ends) ::close(fd);
    }
  }
  forked_copy(const forked_copy&) = delete;
  forked_copy& operator=(const forked_copy&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Waits until the copy has ended, and returns its status. Other processes may still hold its
  /// output.
  [[nodiscard]] int wait() {
    int status = 0;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Waits until the copy has ended and no process holds its output.
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

/// An exit status for a copy: the number of the first condition that does not hold, from 1 on; 0
/// when all hold.
inline int first_false(std::initializer_list<bool> conditions) {
  const auto* const found = std::find(conditions.begin(), conditions.end(), false);
  return found == conditions.end() ? 0 : static_cast<int>(found - conditions.begin()) + 1;
}

}  // namespace kclxx::test

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

#include "support/text.hpp"

namespace kclxx::test {

/// How a forked copy of the test ended, and what it wrote.
struct forked_result {
  int status = -1;  ///< of exit, or 128 + the signal's number
  std::string out;
  std::string err;
};

/// Runs `body` in a forked copy, for what changes the whole process. Its stdin is `input` (-1: an
/// empty pipe that stays open); its stdout and stderr are collected, together at most what fits
/// in a pipe. The copy leaves by _exit with what `body` returns, 99 when it throws.
inline forked_result in_forked_copy(const std::function<int()>& body, int input = -1) {
  std::array<std::array<int, 2>, 3> pipes{};
  for (auto& ends : pipes) {
    if (::pipe(ends.data()) == -1) throw std::runtime_error("pipe");
  }
  // Or what the test runner has printed and not flushed would be the child's, too.
  std::cout.flush();
  std::fflush(stdout);
  const pid_t pid = ::fork();
  if (pid == -1) throw std::runtime_error("fork");
  if (pid == 0) {
    ::dup2(input == -1 ? pipes[0][0] : input, STDIN_FILENO);
    ::dup2(pipes[1][1], STDOUT_FILENO);
    ::dup2(pipes[2][1], STDERR_FILENO);
    for (const auto& ends : pipes) {
      for (const int fd : ends) ::close(fd);
    }
    try {
      ::_exit(body());
    } catch (...) {
      ::_exit(99);
    }
  }
  forked_result result;
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (auto& ends : pipes) ::close(ends[1]);
  result.out = read_all(pipes[1][0]);
  result.err = read_all(pipes[2][0]);
  for (auto& ends : pipes) ::close(ends[0]);
  return result;
}

/// The exit status of a copy: which condition does not hold, from 1 on; 0: all do.
inline int first_false(std::initializer_list<bool> conditions) {
  const auto* const found = std::find(conditions.begin(), conditions.end(), false);
  return found == conditions.end() ? 0 : static_cast<int>(found - conditions.begin()) + 1;
}

}  // namespace kclxx::test

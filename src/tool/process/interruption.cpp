// SPDX-License-Identifier: Apache-2.0
#include "tool/process/interruption.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

namespace kclxx::cli {

namespace {

std::atomic<int> the_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);  // for the handler
// A pipe whose write end is closed by the handler: readable for all who look, without being read.
int read_end = -1;
int write_end = -1;
constexpr int the_signals[] = {SIGINT, SIGTERM, SIGHUP};

void on_signal(int number) {
  const int before = errno;
  for (const int other : the_signals) {
    struct sigaction action {};
    ::sigaction(other, nullptr, &action);
    if (action.sa_handler == on_signal) std::signal(other, SIG_DFL);
  }
  int none = 0;
  if (the_signal.compare_exchange_strong(none, number)) ::close(write_end);
  errno = before;
}

}  // namespace

void take_interruptions(ignored_signals those) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) {
    throw std::system_error(errno, std::generic_category(), "a pipe cannot be made");
  }
  read_end = ends[0];
  write_end = ends[1];
  for (const int number : the_signals) {
    struct sigaction action {};
    ::sigaction(number, nullptr, &action);
    if (action.sa_handler == SIG_IGN && those == ignored_signals::stay_ignored) continue;
    action = {};
    action.sa_handler = on_signal;  // a child gets the default back with its exec
    ::sigaction(number, &action, nullptr);
  }
}

int interruption_descriptor() noexcept { return read_end; }

int interruption() noexcept { return the_signal.load(); }

void throw_if_interrupted() {
  if (interruption() != 0) throw interrupted();
}

void leave_by_interruption() noexcept {
  std::signal(interruption(), SIG_DFL);
  std::raise(interruption());
  std::_Exit(128 + interruption());
}

}  // namespace kclxx::cli

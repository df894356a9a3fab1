// SPDX-License-Identifier: Apache-2.0
#include "cli/passed_on.hpp"

#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <system_error>
#include <unistd.h>

#include "io/signals.hpp"

namespace kclxx::cli {

namespace {

// A batch that moves as a whole before its first byte is copied does not wait for copies.
constexpr int wanted_size = 1 << 20;

}  // namespace

passed_on::passed_on(recorder& to, buffer_pool& pool)
    : lines_(transcript::entry_kind::daemon_line, transcript::entry_kind::end_of_input, to, pool),
      recorder_(to) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) == -1) {
    throw std::system_error(errno, std::generic_category(), "a pipe cannot be made");
  }
  read_end_ = descriptor(ends[0]);
  write_end_ = descriptor(ends[1]);
  ::fcntl(read_end_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(write_end_.get(), F_SETPIPE_SZ, wanted_size);  // refused: more often drained in between
  const io::signal_block no_signals;
  thread_ = std::thread([this] { run(); });
}

passed_on::~passed_on() {
  write_end_.close();
  thread_.join();
}

bool passed_on::move_from(int from, std::size_t count) {
  while (count > 0) {
    const ssize_t n = ::splice(from, nullptr, write_end_.get(), nullptr, count, SPLICE_F_NONBLOCK);
    if (n > 0) {
      count -= static_cast<std::size_t>(n);
    } else if (n == -1 && errno == EAGAIN) {  // it is full
      drain();
    } else if (n == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

void passed_on::drain() {
  const std::lock_guard lock(reading_);
  ssize_t n = 0;
  while ((n = ::read(read_end_.get(), lines_.room(), line_recorder::max_read)) > 0) {
    lines_.took(static_cast<std::size_t>(n));
  }
}

void passed_on::end() {
  drain();
  const std::lock_guard lock(reading_);
  lines_.end();
}

void passed_on::run() {
  pollfd readable{read_end_.get(), POLLIN, 0};
  for (;;) {
    if (::poll(&readable, 1, -1) == -1) continue;  // EINTR
    {
      const std::lock_guard lock(reading_);
      const ssize_t n = ::read(read_end_.get(), lines_.room(), line_recorder::max_read);
      if (n == 0) return;
      if (n > 0) lines_.took(static_cast<std::size_t>(n));
    }
    recorder_.wake();
  }
}

}  // namespace kclxx::cli

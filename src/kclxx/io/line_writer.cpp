// SPDX-License-Identifier: Apache-2.0
#include "io/line_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <cstdlib>
#include <poll.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

namespace kclxx::io {

std::error_code write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd writable{fd, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return {errno, std::generic_category()};
    }
  }
  return {};
}

std::error_code write_now(int fd, std::string_view& text) noexcept {
  while (!text.empty()) {
    iovec piece{const_cast<char*>(text.data()), text.size()};
    ssize_t n = ::pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (n == -1 && errno != EINTR && errno != EPIPE && errno != EBADF) {
      // Full, or unknown there: Linux before 6.5 cannot do it with a pipe.
      pollfd writable{fd, POLLOUT, 0};
      const int ready = ::poll(&writable, 1, 0);
      if (ready == 0) return {};
      // A pipe that is writable has room for that. After a signal it is not known.
      if (ready == 1) n = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    }
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR) {
      return {errno, std::generic_category()};
    }
  }
  return {};
}

namespace {

int process_id = 0;

void note_process() noexcept { process_id = ::getpid(); }

[[noreturn]] void leave_copy() noexcept {
  static_cast<void>(write_all(STDERR_FILENO,
                              "kclxx error: a forked copy of the process returned from user code "
                              "and leaves; end it there with exec or _exit\n"));
  std::_Exit(static_cast<int>(exit_status::daemon_gone));
}

}  // namespace

/// getpid() for each line would be a fifth system call for each small batch.
line_output::line_output(int fd) noexcept : fd_(fd), process_(::getpid()) {
  static const int watched = (note_process(), ::pthread_atfork(nullptr, nullptr, note_process));
  static_cast<void>(watched);
}

std::error_code line_output::write(std::string_view lines) {
  if (process_id != process_) leave_copy();
  if (!keeps_lines()) {
    if (const std::error_code ec = write_now(fd_, lines)) return ec;
    kept_ = lines;
    return {};
  }
  kept_ += lines;
  return write_kept();
}

std::error_code line_output::write_kept() {
  std::string_view rest = kept_;
  const std::error_code ec = write_now(fd_, rest);
  kept_.erase(0, ec ? kept_.size() : kept_.size() - rest.size());
  return ec;
}

}  // namespace kclxx::io

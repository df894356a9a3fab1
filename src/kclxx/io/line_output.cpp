// SPDX-License-Identifier: Apache-2.0
#include "io/line_output.hpp"

#include <cstdlib>
#include <pthread.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

#include "io/line_writer.hpp"

namespace kclxx::io {

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

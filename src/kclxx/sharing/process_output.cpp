// SPDX-License-Identifier: Apache-2.0
#include "sharing/process_output.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/stdio_guard.hpp"

namespace kclxx::sharing {

process_output::process_output() {
  io::descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  null_ = io::descriptor(::fcntl(null.get(), F_DUPFD_CLOEXEC, 3));
  if (!null_.is_open()) throw std::system_error(errno, std::generic_category(), "/dev/null");
  null.close();
  // One that main has closed would be the number of a shard's descriptor.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) == -1) ::dup2(null_.get(), standard);
  }
  io::buffer_stdout_by_line();
}

io::descriptor above_standard(io::descriptor&& fd) noexcept {
  if (fd.get() > STDERR_FILENO || !fd.is_open()) return std::move(fd);
  const io::descriptor low = std::move(fd);
  return io::descriptor(::fcntl(low.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

void process_output::add(int error_of_shard) {
  errors_.push_back(error_of_shard);
  if (errors_.size() == 1) lead();
}

void process_output::remove(int error_of_shard) noexcept {
  const auto found = std::find(errors_.begin(), errors_.end(), error_of_shard);
  if (found == errors_.end()) return;
  const bool is_oldest = found == errors_.begin();
  errors_.erase(found);
  if (is_oldest) lead();
}

void process_output::no_shard_comes() noexcept {
  if (errors_.empty()) lead();
}

void process_output::lead() const noexcept {
  const int to = errors_.empty() ? null_.get() : errors_.front();
  for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) {
    while (::dup2(to, standard) == -1 && (errno == EBUSY || errno == EINTR)) continue;
  }
}

}  // namespace kclxx::sharing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <unistd.h>
#include <utility>

namespace kclxx::io {

/// Calls a system call, which returns -1 on an error, until no signal interrupts it.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

/// Whether the error of a lock or of a folder's fsync says that the kernel or the file system has
/// no such call. Some file systems of a network have none.
inline bool is_unsupported(int error) noexcept {
  return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK;
}

/// Owns a file descriptor; -1 is none.
class descriptor {
 public:
  descriptor() = default;
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor&& source) noexcept : fd_(std::exchange(source.fd_, -1)) {}
  descriptor& operator=(descriptor&& source) noexcept {
    std::swap(fd_, source.fd_);
    return *this;
  }
  ~descriptor() { close(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  /// Gives the descriptor up without closing it.
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
  [[nodiscard]] bool is_open() const noexcept { return fd_ != -1; }
  /// False when an earlier write has failed late; errno has the reason.
  bool close() noexcept { return !is_open() || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_ = -1;
};

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <initializer_list>

#include "io/descriptor.hpp"

namespace kclxx::io {

/// For the descriptors of dialogues (P5): a copy of the process closes those that are entered here.
/// A program that user code starts does not get them, since they are close-on-exec.
/// Thread safety: any thread. Errors: std::bad_alloc.
void keep_private(int fd);
/// No copy is made before it is closed. Blocking: another thread's fork.
void close_private(int fd) noexcept;

/// While it lives no copy of the process is made, so that one has none of the descriptors that are
/// opened meanwhile and kept private.
/// Blocking: another thread's fork, and while it lives that of each thread.
class fork_block {
 public:
  fork_block();
  ~fork_block();
  fork_block(const fork_block&) = delete;
  fork_block& operator=(const fork_block&) = delete;

  /// Errors: std::bad_alloc; then it has none of them.
  void keep_private(std::initializer_list<int> fds);
};

/// A private descriptor, as long as it lives.
class private_descriptor {
 public:
  /// Errors: std::bad_alloc.
  explicit private_descriptor(descriptor&& fd);
  /// A copy of another one. Errors: std::system_error.
  explicit private_descriptor(int original);
  ~private_descriptor() { close(); }
  private_descriptor(const private_descriptor&) = delete;
  private_descriptor& operator=(const private_descriptor&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_.get(); }
  void close() noexcept;

 private:
  descriptor fd_;
};

/// Counts forks since the first call. In a copy it is one higher than in the process that was
/// forked, so code that returns after a fork can tell which of the two it is in.
/// Lifetime: never destroyed.
[[nodiscard]] const std::atomic<unsigned>& fork_count() noexcept;

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <initializer_list>

#include "io/descriptor.hpp"

namespace kclxx::io {

/// The descriptors of dialogues: close-on-exec keeps them from programs that user code starts, and
/// this from copies of the process, which close them (P5).
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

/// How often this process and those that it was forked from were forked without exec since the
/// first call: user code that returns after a fork returns twice. Lifetime: never destroyed.
[[nodiscard]] const std::atomic<unsigned>& fork_count() noexcept;

}  // namespace kclxx::io

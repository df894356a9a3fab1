// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace kclxx::io {

/// Ends a copy of the process that user code has forked, when the copy continues in the library
/// instead of calling exec or _exit: it would do its parent's work a second time. Only the thread
/// that forked lives in a copy, and a mutex that a further thread had stays locked. So the library
/// looks for a copy where user code returns or calls, before it locks anything.
///
/// Thread safety: all functions from any thread.
class copy_guard {
 public:
  /// The guard belongs to this process: an object that is made in a copy may be used there.
  copy_guard() noexcept : generation_(current_generation.load(std::memory_order_relaxed)) {}

  /// Copies of this process are noticed from now on. A process that serves a daemon calls it; one
  /// that has the test kit alone may do in a copy what it likes.
  static void watch() noexcept;

  /// Does not return in a copy: the copy leaves by _exit with exit_status::daemon_gone, and a line
  /// on stderr.
  void leave_if_copied() const noexcept {
    if (generation_ != current_generation.load(std::memory_order_relaxed)) leave();
  }

 private:
  [[noreturn]] static void leave() noexcept;

  /// How many copies lie between the first process and this one.
  static std::atomic<unsigned> current_generation;

  unsigned generation_;
};

}  // namespace kclxx::io

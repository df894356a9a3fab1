// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace kclxx::io {

/// Ends a copy of the process that user code forked, once that goes on into the library instead of
/// calling exec or _exit: it would do its parent's work, and answer for it. Of the threads only the
/// one that forked lives in a copy, and a mutex that another one had stays locked. So a copy is
/// looked for where user code returns or calls, before anything is locked.
///
/// Thread safety: all functions from any thread.
class copy_guard {
 public:
  /// Belongs to this process: what is made in a copy may be used there.
  copy_guard() noexcept : generation_(current_generation.load(std::memory_order_relaxed)) {}

  /// Copies of this process are noticed from now on. Who serves a daemon calls it; a process that
  /// has the test kit alone may do in a copy what it likes.
  static void watch() noexcept;

  /// Does not return in a copy, which leaves by _exit with exit_status::daemon_gone and one line on
  /// stderr.
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

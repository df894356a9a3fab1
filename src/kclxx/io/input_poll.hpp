// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

namespace kclxx::io {

/// Waits until a descriptor has input, or until another thread wakes it.
///
/// Thread safety: wait() on one thread, wake() from any.
class input_poll {
 public:
  enum class result { readable, woken, timed_out };

  /// Errors: std::system_error.
  explicit input_poll(int input);
  ~input_poll();
  input_poll(const input_poll&) = delete;
  input_poll& operator=(const input_poll&) = delete;

  /// `readable` too when the writer is gone: the read will tell. Without a limit it waits until
  /// then. Errors: std::system_error.
  result wait(std::optional<std::chrono::milliseconds> limit);
  /// Lets the wait that is under way, or the next one, return.
  void wake() noexcept;

 private:
  int input_;
  int wake_read_ = -1;
  int wake_write_ = -1;
};

}  // namespace kclxx::io

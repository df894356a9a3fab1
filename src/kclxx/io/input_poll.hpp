// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "io/descriptor.hpp"

namespace kclxx::io {

/// Whether a read returns at once: with input, its end, or an error. To be asked after each wait of
/// Asio's before what might block: Asio completes a wait on a descriptor that it registers where
/// another one was just released, and was ready.
[[nodiscard]] bool has_input(int fd) noexcept;

/// Waits until a descriptor has input, or until another thread wakes it.
///
/// Thread safety: wait() on one thread, wake() from any.
class input_poll {
 public:
  enum class result { readable, woken, timed_out };

  /// Errors: std::system_error.
  explicit input_poll(int input);

  /// `readable` too when the writer is gone: the read will tell. Without a limit it waits until
  /// then. Errors: std::system_error.
  result wait(std::optional<std::chrono::milliseconds> limit);
  /// Lets the wait that is under way, or the next one, return.
  void wake() noexcept;

 private:
  int input_;
  descriptor wake_;  // an eventfd
};

}  // namespace kclxx::io

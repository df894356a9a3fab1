// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "io/descriptor.hpp"

namespace kclxx::io {

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

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace kclxx::test {

/// While it lives, the next call of a system function (flock, fdatasync, fsync) fails, or comes
/// after something else.
/// Thread safety: none.
class failing_disk {
 public:
  failing_disk(const char* function, int error);
  failing_disk(const char* function, std::function<void()> before);
  failing_disk(const failing_disk&) = delete;
  failing_disk& operator=(const failing_disk&) = delete;
  ~failing_disk();

  /// Whether the call has come.
  [[nodiscard]] static bool has_failed();
};

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx::test {

/// While it lives, the next call of a system function (flock, fdatasync, fsync, access) fails, or
/// the nth.
/// Thread safety: none.
class failing_disk {
 public:
  failing_disk(const char* function, int error, int nth = 1);
  failing_disk(const failing_disk&) = delete;
  failing_disk& operator=(const failing_disk&) = delete;
  ~failing_disk();

  /// Whether the call has come.
  [[nodiscard]] static bool has_failed();
};

}  // namespace kclxx::test

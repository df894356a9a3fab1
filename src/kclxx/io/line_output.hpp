// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace kclxx::io {

/// Writes lines to a descriptor and never waits for its reader: what is not taken is kept.
/// Thread safety: none.
class line_output {
 public:
  explicit line_output(int fd) noexcept : fd_(fd) {}

  /// After what is kept. Errors: errno's, then nothing is kept; std::bad_alloc.
  std::error_code write(std::string_view lines);
  /// Tries to write what is kept. Errors: as write.
  std::error_code write_kept();
  [[nodiscard]] bool keeps_lines() const noexcept { return !kept_.empty(); }
  void drop_kept() noexcept { kept_.clear(); }

 private:
  int fd_;
  std::string kept_;
};

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <system_error>

namespace kclxx::io {

/// Writes all of `text` to `fd`, through EINTR and short writes; where the descriptor happens to
/// be non-blocking it waits with poll(2). SIGPIPE is the caller's matter (signals.hpp).
/// Errors: std::errc::broken_pipe when the reader is gone, else errno's.
/// Blocking: until the reader took it.
std::error_code write_all(int fd, std::string_view text) noexcept;

/// Writes what `fd` takes without waiting, and removes it from `text`. Errors: as write_all.
/// Blocking: no, where `fd` is a pipe or a socket.
std::error_code write_now(int fd, std::string_view& text) noexcept;

/// Writes lines to a descriptor and never waits for its reader: what is not taken is kept. A copy
/// of the process that user code forked, and that goes on, is ended when it writes: it would answer
/// for its parent. Thread safety: none.
class line_output {
 public:
  explicit line_output(int fd) noexcept;

  /// After what is kept. Errors: errno's; then nothing is kept.
  std::error_code write(std::string_view lines);
  /// Tries to write what is kept. Errors: as write.
  std::error_code write_kept();
  [[nodiscard]] bool keeps_lines() const noexcept { return !kept_.empty(); }
  void drop_kept() noexcept { kept_.clear(); }

 private:
  int fd_;
  int process_;
  std::string kept_;
};

}  // namespace kclxx::io

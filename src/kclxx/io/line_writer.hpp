// SPDX-License-Identifier: Apache-2.0
#pragma once

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

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx::io {

/// The descriptors of dialogues: close-on-exec keeps them from programs that user code starts, and
/// this from copies of the process, which close them (P5).
/// Thread safety: any thread. Errors: std::bad_alloc.
void keep_private(int fd);
/// Call it before it is closed: the number may be another file's soon.
void forget_private(int fd) noexcept;

/// How often this process and those that it was forked from were forked without exec since the
/// first call: user code that returns after a fork returns twice.
[[nodiscard]] unsigned fork_count() noexcept;

}  // namespace kclxx::io

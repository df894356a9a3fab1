// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx::share {

/// Waits at the connection until the resident reports that the shard has ended, and leaves with
/// the shard's status. When the resident is gone, executes this program again with `arguments`.
///
/// A launcher waits as long as its shard lives, and there is one for each shard. So this gives back
/// the memory that the process has written to: after it, nothing of the program works any more.
[[noreturn]] void wait_for_end(int connection, const char* const* arguments, char** environment);

}  // namespace kclxx::share

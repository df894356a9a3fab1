// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <string>

#include "io/private_descriptors.hpp"

namespace kclxx::io {

/// Ends a copy of the process that user code forked, and that has returned from user code: there it
/// is the only thread, and it would process and answer what the process does itself.
/// Thread safety: any thread.
class forked_copy {
 public:
  /// Writes a line to stderr and leaves, in a process that was forked since the constructor. Takes
  /// no lock, which another thread may have had.
  void leave_if_copy(const std::string& shard_id) const {
    if (forks_.load(std::memory_order_relaxed) != count_) leave(shard_id);
  }

 private:
  [[noreturn]] static void leave(const std::string& shard_id);

  const std::atomic<unsigned>& forks_ = fork_count();
  const unsigned count_ = forks_;
};

}  // namespace kclxx::io

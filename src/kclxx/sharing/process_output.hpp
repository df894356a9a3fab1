// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "io/descriptor.hpp"

namespace kclxx::sharing {

/// A descriptor that has come from elsewhere, with a number above 2: process_output would replace
/// one that got a number which user code has closed. Not open: there is no other number.
[[nodiscard]] io::descriptor above_standard(io::descriptor&& fd) noexcept;

/// Where the descriptors 1 and 2 of the process lead to, hence what user code prints: to the stderr
/// of the oldest shard that is served, and to /dev/null while there is none. A shard that has ended
/// must not be held open: its daemon waits for that (P31). stdout is never flushed, since a pipe
/// may be full.
///
/// Thread safety: none.
class process_output {
 public:
  /// From now on that of the launcher that started the process, until a shard is there, or
  /// no_shard_comes(). stdout is line-buffered, so that prints are seen in time.
  /// Errors: std::exception.
  process_output();

  /// Errors: std::bad_alloc.
  void add(int error_of_shard);
  void remove(int error_of_shard) noexcept;
  /// The launcher that started the process is gone without its shard.
  void no_shard_comes() noexcept;

 private:
  void lead() const noexcept;

  io::descriptor null_;
  std::vector<int> errors_;  // the oldest first
};

}  // namespace kclxx::sharing

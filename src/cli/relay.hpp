// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cli/buffer_pool.hpp"
#include "cli/descriptor.hpp"
#include "cli/recorder.hpp"
#include "transcript/entry.hpp"

namespace kclxx::cli {

/// Copies one direction of a dialogue, as it comes and without changing a byte, and hands its
/// lines to a recorder.
///
/// Thread safety: none; one relay and one thread for each direction.
class relay {
 public:
  /// `end` is recorded when `from` ends. Lifetime: `to_record` and `pool` outlive it.
  relay(descriptor from, descriptor to, transcript::entry_kind lines, transcript::entry_kind end,
        recorder& to_record, buffer_pool& pool);

  /// Copies until `from` ends or nobody reads `to`, then closes both: what happened on one side
  /// has happened on the other at once.
  /// Blocking: until then.
  void run();

 private:
  enum class readiness { readable, peer_is_gone };

  [[nodiscard]] readiness wait() const;
  void wait_for_room() const;
  bool copy_once();
  bool copy_by_tee();
  bool copy_by_write();
  void record(std::size_t fresh);
  bool end();

  descriptor from_;
  descriptor to_;
  transcript::entry_kind lines_;
  transcript::entry_kind end_;
  recorder& recorder_;
  buffer_pool& pool_;
  buffer_pool::buffer buffer_;
  bool both_are_pipes_ = true;  // until the system says that they are not
  std::size_t size_ = 0;        // of the unfinished line at the buffer's beginning
};

}  // namespace kclxx::cli

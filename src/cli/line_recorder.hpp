// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cli/buffer_pool.hpp"
#include "cli/recorder.hpp"
#include "transcript/entry.hpp"

namespace kclxx::cli {

/// Cuts what one side says into lines for the recorder, which gets the long ones without a copy.
///
/// Thread safety: none. Lifetime: the recorder and the pool outlive it.
class line_recorder {
 public:
  static constexpr std::size_t max_read = std::size_t{256} << 10;

  /// `end` is the event that says that this side has ended.
  line_recorder(transcript::entry_kind lines, transcript::entry_kind end, recorder& to,
                buffer_pool& pool)
      : lines_(lines), end_(end), recorder_(to), pool_(pool), buffer_(pool.take()) {}

  /// Where the next bytes are to be put: room for max_read of them.
  [[nodiscard]] char* room();
  /// So many have been put there. They stay where they are while the caller has `memory`.
  void took(std::size_t count);
  [[nodiscard]] buffer_pool::buffer memory() const { return buffer_; }
  void end();

 private:
  transcript::entry_kind lines_;
  transcript::entry_kind end_;
  recorder& recorder_;
  buffer_pool& pool_;
  buffer_pool::buffer buffer_;
  std::size_t size_ = 0;  // of the unfinished line at the buffer's beginning
};

}  // namespace kclxx::cli

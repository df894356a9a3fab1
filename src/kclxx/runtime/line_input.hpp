// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>

#include "driver/line_decoder.hpp"
#include "io/lines.hpp"

namespace kclxx::runtime {

/// Reads and decodes the daemon's lines. Call read() once, then next() until it returns
/// std::nullopt, and so on.
///
/// Memory for large lines is reused while they keep coming, and given back after 16 smaller lines
/// or a second without any line.
/// Thread safety: none; belongs to the thread that reads.
class line_input {
 public:
  static constexpr std::chrono::milliseconds idle_time{1000};

  line_input(int fd, std::size_t max_line_length);

  /// Precondition: reading does not block.
  void read();
  /// The next line that was read, or the end after the last line.
  std::optional<driver::line_decoder::outcome> next();
  /// False when next() would return std::nullopt.
  [[nodiscard]] bool may_have_line() const noexcept { return may_have_line_; }
  /// Whether next() has given the end, or a line that is too long.
  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }

  /// Whether memory is held that `on_idle` would give back.
  [[nodiscard]] bool holds_large_memory() const noexcept { return holds_large_; }
  /// Gives large memory back if it is idle. Call it about once in idle_time while
  /// holds_large_memory().
  void on_idle();

 private:
  static constexpr int small_lines_before_release = 16;

  driver::line_decoder::outcome last();
  std::shared_ptr<driver::batch_memory> take_memory();
  void note_size(std::size_t length);
  void release();

  int fd_;
  std::size_t limit_;
  io::line_reader reader_;
  driver::line_decoder decoder_;
  driver::batch_memory_pool pool_;
  /// The memory of the line that is arriving, if its beginning has been decoded.
  std::shared_ptr<driver::batch_memory> arriving_;
  std::chrono::steady_clock::time_point last_line_{};
  int small_lines_ = 0;
  int error_ = 0;  // errno's, of the last read
  bool holds_large_ = false;
  bool may_have_line_ = false;
  bool is_at_end_ = false;
  bool is_in_line_ = false;  // the input has ended in the middle of a line
  bool has_ended_ = false;
};

}  // namespace kclxx::runtime

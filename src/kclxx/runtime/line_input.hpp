// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "driver/line_decoder.hpp"
#include "io/line_reader.hpp"

namespace kclxx::runtime {

/// Where line_input delivers to.
class line_sink {
 public:
  virtual ~line_sink() = default;
  virtual void on_line(driver::line_decoder::outcome line) = 0;
  /// `error` is errno's, or 0.
  virtual void on_end_of_input(bool unfinished_line, int error) = 0;
  /// No more lines now.
  [[nodiscard]] virtual bool is_full() const = 0;
  /// No more lines ever.
  [[nodiscard]] virtual bool is_over() const = 0;
};

/// The daemon's lines: read and decoded.
///
/// Memory for large lines is reused while they keep coming, and given back after 16 smaller lines
/// or a second without any line.
/// Thread safety: none; belongs to whichever thread reads.
class line_input {
 public:
  static constexpr std::chrono::milliseconds idle_time{1000};

  line_input(int fd, std::size_t max_line_length, line_sink& sink);

  enum class state { open, ended };

  /// Reads once, and delivers lines until none is left or the sink is full.
  /// Precondition: reading does not block.
  state on_readable();
  /// Delivers what was read before.
  state on_resumed();

  /// Whether more was read than was delivered.
  [[nodiscard]] bool is_ahead() const noexcept { return reader_.has_unread(); }
  /// Whether the sink was full when lines were last delivered, so that whole lines may be left.
  [[nodiscard]] bool is_held_back() const noexcept { return is_held_back_; }
  /// Whether memory is held that `on_idle` would give back.
  [[nodiscard]] bool holds_large_memory() const noexcept { return holds_large_; }
  /// Call it about once in idle_time while holds_large_memory().
  void on_idle();

 private:
  void deliver_lines();
  void deliver(std::shared_ptr<driver::batch_memory> memory, std::size_t length);
  std::shared_ptr<driver::batch_memory> take_memory();
  state finish(int error);
  void note_size(std::size_t length);
  void release();

  int fd_;
  std::size_t limit_;
  line_sink& sink_;
  io::line_reader reader_;
  driver::line_decoder decoder_;
  driver::batch_memory_pool pool_;
  std::shared_ptr<driver::batch_memory> arriving_;  // of a line that was begun to be read
  std::chrono::steady_clock::time_point last_line_{};
  int small_lines_ = 0;
  bool holds_large_ = false;
  bool is_held_back_ = false;
};

}  // namespace kclxx::runtime

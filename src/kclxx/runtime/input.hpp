// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "io/line_reader.hpp"
#include "protocol/decoder.hpp"
#include "runtime/batch_memory.hpp"
#include "runtime/conversation.hpp"

namespace kclxx::runtime {

/// The daemon's lines: read, decoded, and handed to the conversation.
///
/// Memory for large lines is reused while they keep coming, and given back after 16 smaller lines
/// or a second without one.
/// Thread safety: none; belongs to whichever thread reads (conversation_reading.cpp).
class input {
 public:
  static constexpr std::chrono::milliseconds idle_time{1000};

  input(int fd, std::size_t max_line_length, conversation& to, logger& log);

  enum class state { open, ended };

  /// Reads once, and delivers lines until none is left or the conversation wants no more.
  /// Precondition: reading does not block.
  state on_readable();
  /// Delivers what was read before.
  void on_resumed() { deliver_lines(); }

  /// Whether more was read than was delivered.
  [[nodiscard]] bool is_ahead() const noexcept { return reader_.has_unread(); }
  /// Whether memory is held that `on_idle` would give back.
  [[nodiscard]] bool holds_large_memory() const noexcept { return holds_large_; }
  /// Call it about once in idle_time while holds_large_memory().
  void on_idle();

 private:
  void deliver_lines();
  void read_ahead(std::shared_ptr<batch_memory> memory);
  std::shared_ptr<batch_memory> take_memory();
  void keep_beginning(const char* line, std::size_t length);
  void deliver(std::shared_ptr<batch_memory> memory, std::size_t length);
  void refuse_long_line();
  void note_size(std::size_t length);
  void release();

  int fd_;
  std::size_t limit_;
  conversation& conversation_;
  logger& log_;
  io::line_reader reader_;
  protocol::decoder decoder_;
  batch_memory_pool pool_;
  std::shared_ptr<batch_memory> arriving_;  // of a line that was begun to be read
  std::string beginning_;                   // of that line, or of the one being delivered
  std::chrono::steady_clock::time_point last_line_{};
  int small_lines_ = 0;
  bool holds_large_ = false;
  bool has_said_utf8_ = false;
};

/// The beginning of a line for a log: cut short, with what is not printable ASCII escaped.
std::string excerpt(const char* line, std::size_t length);

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tool/process/child_process.hpp"

namespace kclxx::cli {

/// Both directions of the dialogue with one child. While a line of any size is written, what the
/// child writes is read, so neither side can block the other.
///
/// 1. send() queues lines. 2. next() writes them, and says one thing that happened. 3. In the end
/// close_input(), next() until end_of_output, and wait for process().
///
/// Memory: `max_line` and two reads for the child's lines. A child that floods us with lines and
/// does not read its answers is not read either, beyond `max_unsent` bytes of answers.
/// Thread safety: none. SIGPIPE gets a handler that does nothing, in the whole process.
class child_dialogue {
 public:
  using clock = child_process::clock;

  /// Of a longer line from the child the beginning is kept, about this much.
  static constexpr std::size_t max_line = std::size_t{1} << 20;
  static constexpr std::size_t max_unsent = std::size_t{1} << 20;

  enum class event_kind {
    line,           ///< a line from the child, which may be empty
    sent,           ///< all that was queued is in the pipe; said once
    input_broken,   ///< the child does not read any more; what was queued is dropped
    end_of_output,  ///< the child closed its stdout; said again from then on
    timed_out,      ///< none of these before the deadline
  };
  struct event {
    event_kind what;
    /// Without its newline. Lifetime: until the next call of next().
    std::string_view line{};
    std::size_t length = 0;  ///< the line's real one, also when it was cut
  };

  /// Errors: start_error.
  explicit child_dialogue(
      const std::vector<std::string>& command,
      child_process::error_output error = child_process::error_output::inherited);

  /// Queues a line and its newline. Lifetime: the text is the caller's, and stays as it is until
  /// `sent` or `input_broken`.
  void send(std::string_view line);
  /// The same with a text of its own.
  void send_copy(std::string line);
  /// Just these bytes, without a newline.
  void send_bytes(std::string bytes);
  /// The end of the child's input. What is queued is dropped.
  void close_input() noexcept;
  [[nodiscard]] bool is_sending() const noexcept { return !unsent_.empty(); }
  /// What the child has written behind the line that next() gave last: behind its last line, what
  /// it has begun and not ended with a newline yet. Lifetime: until the next call of next().
  [[nodiscard]] std::string_view unread() const noexcept {
    return {buffer_.data() + begin_, end_ - begin_};
  }

  /// Blocking: until something happened, or the deadline. Errors: interrupted.
  event next(clock::time_point deadline);
  /// Blocking: the same, but the child's lines stay unread; `sent` also when nothing was queued.
  event next_sent(clock::time_point deadline);

  [[nodiscard]] child_process& process() noexcept { return process_; }

 private:
  struct piece {
    std::string own;
    std::string_view borrowed;
    [[nodiscard]] std::string_view text() const noexcept {
      return borrowed.empty() ? std::string_view(own) : borrowed;
    }
  };

  void queue(piece one);
  void write_some();
  void drop_unsent();
  std::optional<event> take_line();
  std::optional<event> take_rest();
  std::vector<char>::iterator at(std::size_t offset);
  void read_some();
  bool wait(clock::time_point deadline, bool reads);
  [[nodiscard]] bool may_read() const noexcept;

  child_process process_;

  std::deque<piece> unsent_;
  std::size_t first_done_ = 0;     // bytes of the first piece that are written
  std::size_t unsent_copies_ = 0;  // bytes
  bool say_sent_ = false;
  bool say_broken_ = false;

  std::vector<char> buffer_;  // grows with the longest line
  std::size_t end_ = 0;       // of what was read
  std::size_t begin_ = 0;     // of the current line
  std::size_t scanned_ = 0;   // no newline between begin_ and here
  std::size_t dropped_ = 0;   // bytes of the current line
  bool output_ended_ = false;
};

}  // namespace kclxx::cli

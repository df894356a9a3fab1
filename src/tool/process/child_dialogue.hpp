// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "tool/line_splitter.hpp"
#include "tool/process/cancellable_loop.hpp"
#include "tool/process/child_process.hpp"

namespace kclxx::tool {

/// Both directions of the dialogue with one child. While a line of any size is written, what the
/// child writes is read, so neither side can block the other. The child has a process group of its
/// own.
///
/// 1. send() queues lines. 2. next() writes them, and returns one event. 3. In the end
/// close_input(), next() until end_of_output, and wait_exit().
///
/// Memory: `max_line` and two reads for the child's lines. A child that floods us with lines and
/// does not read its answers is not read either, beyond `max_unsent` bytes of answers.
/// Thread safety: none, but for wake(). SIGPIPE gets a handler that does nothing, in the whole
/// process.
class child_dialogue {
 public:
  using clock = cancellable_loop::clock;

  /// Of a longer line from the child the beginning is kept, about this much.
  static constexpr std::size_t max_line = std::size_t{1} << 20;
  static constexpr std::size_t max_unsent = std::size_t{1} << 20;

  enum class event_kind {
    line,           ///< a line from the child, which may be empty
    sent,           ///< all that was queued is in the pipe; reported once
    input_broken,   ///< the child does not read any more; what was queued is dropped
    end_of_output,  ///< the child closed its stdout; reported again from then on
    woken,          ///< wake() was called; reported once for any number of calls
    timed_out,      ///< none of these before the deadline
  };
  struct event {
    event_kind what;
    /// Without its newline. Lifetime: until the next call of next().
    std::string_view line{};
    std::size_t length = 0;  ///< the line's real one, also when it was cut
    /// When the line was read, which may be long before it is returned; of another event when it
    /// happened.
    clock::time_point at = clock::now();
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
  /// From now on as if the child had closed its output.
  void close_output() noexcept;
  [[nodiscard]] bool is_input_open() const noexcept { return input_.is_open(); }
  [[nodiscard]] bool is_sending() const noexcept { return !unsent_.empty(); }
  /// What the child has written after the line that next() gave last: after its last line, what
  /// it has begun and not ended with a newline yet. Lifetime: until the next call of next().
  [[nodiscard]] std::string_view unread() const noexcept { return lines_.rest(); }

  /// What next() may return besides `sent`, `input_broken`, `woken` and `timed_out`.
  enum class output { is_read, stays_unread };
  /// Blocking: until something happened, or the deadline. Errors: cancelled.
  event next(clock::time_point deadline, output how = output::is_read);
  /// Ends a next() that waits. From any thread.
  void wake();
  /// Blocking: until the child has ended. std::nullopt: not before the deadline.
  /// Errors: cancelled.
  std::optional<child_exit> wait_exit(clock::time_point deadline);

  void kill(int signal) const noexcept { process_.kill(signal); }
  /// Our end of the pipe from its stderr, for the caller to take.
  [[nodiscard]] descriptor take_error() noexcept { return std::move(process_.error); }
  /// For other descriptors, whose handlers next() and wait_exit() call, too.
  [[nodiscard]] cancellable_loop& loop() noexcept { return loop_; }

 private:
  using stream = boost::asio::posix::stream_descriptor;

  struct chunk {
    std::string own;
    std::string_view borrowed;
    [[nodiscard]] std::string_view text() const noexcept {
      return borrowed.empty() ? std::string_view(own) : borrowed;
    }
  };

  void queue(chunk bytes);
  void write_some();
  void drop_unsent();
  std::optional<event> take_line();
  void read_some();
  void await_readiness(bool reads);
  [[nodiscard]] bool may_read() const noexcept { return unsent_copies_ <= max_unsent; }

  cancellable_loop loop_;  // first: no handler is called once the rest is gone
  child_process process_;
  stream input_{loop_.context()};
  stream output_{loop_.context()};
  stream ended_{loop_.context()};
  bool awaits_input_ = false;
  bool awaits_output_ = false;

  std::deque<chunk> unsent_;
  std::size_t first_done_ = 0;     // bytes of the first chunk that are written
  std::size_t unsent_copies_ = 0;  // bytes
  bool is_sent_ = false;           // not yet reported
  bool is_broken_ = false;         // the same
  bool is_woken_ = false;          // the same

  line_splitter lines_;
  std::size_t dropped_ = 0;  // bytes of the current line
  clock::time_point read_at_{};
};

}  // namespace kclxx::tool

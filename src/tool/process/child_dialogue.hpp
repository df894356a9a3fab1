// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "io/lines.hpp"
#include "tool/line_splitter.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/dialogue.hpp"
#include "tool/process/program.hpp"

namespace kclxx::tool {

/// The dialogue with a process, which has a process group of its own. While a line of any size is
/// written, what the child writes is read, so neither side can block the other. Its stderr is read
/// all the time, as the daemon reads it.
///
/// Memory: `max_line` and two reads for the child's lines.
/// Errors: next() and wait_exit() throw cancelled.
/// Thread safety: none. SIGPIPE gets a handler that does nothing, in the whole process.
class child_dialogue final : public dialogue {
 public:
  /// Of a longer line from the child the beginning is kept, about this much.
  static constexpr std::size_t max_line = std::size_t{1} << 20;

  /// Gets what the child writes to stderr, in pieces; called by next() and wait_exit().
  using error_handler = std::function<void(std::string_view)>;

  /// Errors: start_error.
  child_dialogue(const std::vector<std::string>& command, error_handler on_error);
  ~child_dialogue() override;
  child_dialogue(const child_dialogue&) = delete;
  child_dialogue& operator=(const child_dialogue&) = delete;

  /// Precondition of both: nothing is being sent. They do nothing when the input is closed.
  void send(std::string_view line) override;
  /// Just these bytes, without a newline.
  void send_bytes(std::string bytes);
  [[nodiscard]] bool is_sending() const noexcept {
    return !unsent_.front().empty() || !unsent_.back().empty();
  }
  void close_input() noexcept override;
  /// From now on as if the child had closed its output.
  void close_output() noexcept { close(output_); }
  void close_error() noexcept { close(error_); }
  [[nodiscard]] bool is_input_open() const noexcept { return input_.is_open(); }
  /// Whether the child has taken all that was sent out of the pipe. True once its input is closed.
  [[nodiscard]] bool is_all_read() noexcept;
  /// What the child has written after the line that next() gave last: after its last line, what
  /// it has begun and not ended with a newline yet. Lifetime: until the next call of next().
  [[nodiscard]] std::string_view unread() const noexcept { return lines_.rest(); }

  event next(clock::time_point deadline, output child_lines = output::is_read) override;
  /// Until nobody holds its stderr any more either, but for a child that was killed.
  std::optional<child_exit> wait_exit(clock::time_point deadline) override;

  void kill() noexcept override;
  void kill(int signal) const noexcept { process_.kill(signal); }
  [[nodiscard]] cancellable_loop& loop() noexcept { return loop_; }

 private:
  using stream = boost::asio::posix::stream_descriptor;

  static void close(stream& one) noexcept;
  void queue(std::string_view text, std::string_view end);
  void write_some();
  std::optional<event> take_line();
  void read_some();
  void read_error();
  void await_readiness(bool reads);

  cancellable_loop loop_;  // first: no handler is called once the rest is gone
  child_process process_;
  stream input_{loop_.context()};
  stream output_{loop_.context()};
  stream error_{loop_.context()};
  stream ended_{loop_.context()};
  error_handler on_error_;
  std::array<char, 4096> error_chunk_{};
  bool was_killed_ = false;
  bool awaits_input_ = false;
  bool awaits_output_ = false;
  bool awaits_end_ = false;

  std::string own_;                         // what send_bytes() was given
  std::array<std::string_view, 2> unsent_;  // of a line, and its newline
  bool is_sent_ = false;                    // not yet reported
  bool is_broken_ = false;                  // the same

  line_splitter lines_{line_splitter::line_end::as_in_java};
  std::size_t dropped_ = 0;  // bytes of the current line
  clock::time_point read_at_{};
};

/// Passes on a child's stderr, with no line cut by another child's.
class whole_lines {
 public:
  ~whole_lines() { write(begun_.size()); }
  void take(std::string_view text) {
    begun_.append(text);
    write(begun_.size() < longest ? begun_.rfind('\n') + 1 : begun_.size());
  }

 private:
  static constexpr std::size_t longest = std::size_t{1} << 20;

  void write(std::size_t size) {
    const std::error_code ignored = io::write_all(STDERR_FILENO, {begun_.data(), size});
    static_cast<void>(ignored);
    begun_.erase(0, size);
  }

  std::string begun_;
};

}  // namespace kclxx::tool

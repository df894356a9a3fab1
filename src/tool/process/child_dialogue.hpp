// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "tool/line_splitter.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/dialogue.hpp"
#include "tool/process/program.hpp"

namespace kclxx::tool {

/// The dialogue with a process, which has a process group of its own. While a line of any size is
/// written, what the child writes is read, so that neither side can block the other. Its stderr is
/// read all the time, as the daemon reads it.
///
/// Memory: `max_line` and two reads for the child's lines, and the line that is sent.
/// Errors: next() and wait_exit() throw cancelled.
/// Thread safety: none. SIGPIPE gets a handler that does nothing, in the whole process.
class child_dialogue final : public dialogue {
 public:
  /// About how many bytes of a line from the child are kept: the beginning of a longer line.
  static constexpr std::size_t max_line = std::size_t{1} << 20;

  /// What becomes of the child's stderr: its end is kept for error_text(), or its lines go to this
  /// process's stderr, none cut by another child's.
  enum class error_output { kept, passed_on };

  /// Errors: start_error.
  child_dialogue(const std::vector<std::string>& command, error_output errors);
  ~child_dialogue() override;
  child_dialogue(const child_dialogue&) = delete;
  child_dialogue& operator=(const child_dialogue&) = delete;

  void send(std::string_view text, std::string_view end = "\n") override;
  event next(clock::time_point deadline, output child_lines = output::is_read) override;
  [[nodiscard]] bool is_all_read() override;
  void close_input() noexcept override;
  void abandon() noexcept override;
  void kill(int signal) noexcept override;
  std::optional<child_exit> wait_exit(clock::time_point deadline) override;
  std::string error_text() override;

 private:
  using stream = boost::asio::posix::stream_descriptor;

  static void close(stream& pipe) noexcept;
  [[nodiscard]] bool is_sending() const noexcept { return written_bytes_ < queued_text_.size(); }
  void write_some();
  std::optional<event> take_line();
  void read_some();
  void read_error();
  void take_error(std::string_view text);
  void pass_on_error(std::size_t size);
  void await_readiness(bool reads);

  cancellable_loop loop_;  ///< the first member: its handlers use the members below
  child_process process_;
  stream input_{loop_.context()};
  stream output_{loop_.context()};
  stream error_{loop_.context()};
  stream ended_{loop_.context()};
  bool passes_errors_on_;
  std::array<char, 4096> error_chunk_{};
  /// The end of stderr, or with passes_errors_on_ a line that is not complete yet.
  std::string error_text_;
  bool was_killed_ = false;
  bool awaits_input_ = false;
  bool awaits_output_ = false;
  bool awaits_end_ = false;

  std::string queued_text_;
  std::size_t written_bytes_ = 0;  ///< how much of queued_text_ is in the pipe
  bool must_report_sent_ = false;
  bool must_report_broken_ = false;

  line_splitter lines_{line_splitter::line_end::carriage_return_too};
  clock::time_point last_read_{};
};

}  // namespace kclxx::tool

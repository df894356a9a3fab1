// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tool/process/dialogue.hpp"

namespace kclxx::tool {

/// What came from a child's stdout.
struct read_result {
  enum class kind { line, end_of_output, timed_out };
  kind what = kind::line;
  /// The line without its newline; with timed_out what came without a newline, if anything.
  std::string text{};
};

/// The child under check, as the rules see it. The tool starts a process; the tests of the rules
/// put a fake in its place.
class checked_child {
 public:
  virtual ~checked_child() = default;

  /// Writes the bytes as they are. False: the child does not read them, for as long as the time
  /// limit of a step, or has closed its stdin.
  virtual bool send(std::string_view bytes) = 0;
  /// Writes an answer to a checkpoint. As the daemon does, it takes no line of the child in the
  /// meantime. False: the child has not read it within the time limit of a step.
  virtual bool answer(std::string_view bytes) = 0;
  /// Until the child has read all that was sent, or its input is closed. False: not within the time
  /// limit of a step.
  virtual bool wait_until_read() = 0;
  /// The last line before the end of the output needs no newline: the daemon's reader is as kind.
  virtual read_result next_line(std::chrono::milliseconds limit) = 0;
  /// Lets this time pass. What the child writes in it is not lost.
  virtual void pause(std::chrono::milliseconds time) = 0;
  virtual void close_input() = 0;
  /// The daemon dies: all three pipes are closed at once.
  virtual void abandon() = 0;
  /// `name`: SIGHUP, SIGINT, SIGQUIT or SIGTERM.
  virtual void signal(std::string_view name) = 0;
  /// Until the process has ended, and nobody holds its stdout and stderr any more, which the
  /// daemon waits for too. std::nullopt: not within `limit`.
  virtual std::optional<child_exit> wait_end(std::chrono::milliseconds limit) = 0;
  /// The end of what it wrote to stderr.
  virtual std::string error_text() = 0;
};

using child_starter = std::function<std::unique_ptr<checked_child>()>;

}  // namespace kclxx::tool

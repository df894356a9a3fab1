// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tool/line_splitter.hpp"

namespace kclxx::transcript {

// Where the bytes of transcripts come from and go to: files in the tool, memory in tests.

class byte_source {
 public:
  virtual ~byte_source() = default;
  /// Reads up to `size` bytes; 0 is the end. Errors: each source has its own.
  virtual std::size_t read(char* target, std::size_t size) = 0;
};

class byte_sink {
 public:
  virtual ~byte_sink() = default;
  /// Writes all pieces as one.
  virtual void write(std::span<const std::string_view> pieces) = 0;
};

/// The first line of a transcript.
struct header {
  std::optional<std::string> shard;  ///< unknown when the dialogue did not begin with initialize
  std::string started;               ///< UTC, "2026-11-21T07:00:00.123456Z"
  std::vector<std::string> command;  ///< begins with the child's program

  bool operator==(const header&) const = default;
};

enum class entry_kind {
  daemon_line,
  child_line,
  exit,           ///< the child left with a status
  killed,         ///< a signal ended the child
  end_of_input,   ///< the daemon closed the child's input
  end_of_output,  ///< the child closed its output
};

/// One line of a transcript.
/// Lifetime: `line` ends with the next call of the reader.
struct entry {
  /// The time since header::started; std::nullopt in a file that has only the daemon's lines.
  std::optional<std::chrono::microseconds> at{};
  entry_kind kind = entry_kind::daemon_line;
  std::string_view line{};  ///< unchanged, without its newline; empty for events
  int number = 0;           ///< the exit status, or the signal's number
  /// The length of a line that was too long to be recorded, of which `line` is the beginning; else
  /// 0.
  std::size_t whole_length = 0;
  std::size_t line_number = 0;
};

/// "2026-11-21T07:00:00.123456Z"
std::string format_time(std::chrono::system_clock::time_point date);

/// The shard that a line of the daemon initializes; std::nullopt for any other line.
std::optional<std::string> initialized_shard(std::string_view line);

/// The file is not a transcript, is damaged, or cut off; what() begins with its name and the number
/// of the line.
class transcript_error : public std::runtime_error {
 public:
  transcript_error(const std::string& name, std::size_t line_number, const std::string& message);
  [[nodiscard]] std::size_t line_number() const noexcept { return line_number_; }
  /// The message without the file and the line in front.
  [[nodiscard]] const char* problem() const noexcept { return what() + problem_at_; }

 private:
  std::size_t line_number_;
  std::size_t problem_at_;
};

/// Reads a transcript (docs/transcripts.md), or a file with nothing but the daemon's lines.
///
/// 1. The constructor reads the first line. 2. next() until it returns false.
/// Thread safety: none. Memory: that of the longest line.
class reader {
 public:
  static constexpr std::size_t default_max_line = std::size_t{1} << 30;

  /// `name` is for messages. Lifetime: `source` outlives the reader.
  /// Errors: transcript_error, also for an empty file; and what the source throws.
  reader(byte_source& source, std::string name, std::size_t max_line = default_max_line);

  /// std::nullopt: the file has only the daemon's lines, and no times.
  [[nodiscard]] const std::optional<header>& head() const noexcept { return header_; }

  /// Reads the next entry. False at the end.
  /// Errors: transcript_error, after all entries before the damage; and what the source throws.
  bool next(entry& out);

 private:
  /// The next line that is not empty, without blanks around it. A child ignores these blanks, too.
  bool next_line(std::string_view& line);
  bool read_line(std::string_view& line);
  [[noreturn]] void fail(const std::string& message) const;

  byte_source& source_;
  std::string name_;
  std::size_t max_line_;
  tool::line_splitter lines_;
  std::size_t line_number_ = 0;
  std::optional<header> header_;
  /// The first line of a file without a header, until next() has given it.
  std::optional<std::string_view> first_line_;
  std::string text_;  ///< the line of the last entry, if it was escaped
};

/// Writes a transcript (docs/transcripts.md). Each call writes one line to the sink, in one write:
/// when the writing process is killed, at most the last line is cut off.
///
/// Thread safety: none.
class writer {
 public:
  /// Lifetime: `sink` outlives the writer.
  explicit writer(byte_sink& sink) : sink_(sink) {}

  void write(const header& header);
  /// A whole line that is an object is written unchanged and without a copy. `is_unfinished`: the
  /// line had no newline. Precondition: `entry.at` is set.
  void write(const entry& entry, bool is_unfinished = false);

 private:
  void begin_text(const entry& entry);

  byte_sink& sink_;
  std::string text_;  ///< a member, so that its memory is used again
};

}  // namespace kclxx::transcript

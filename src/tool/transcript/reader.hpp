// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tool/line_splitter.hpp"
#include "tool/transcript/byte_stream.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::transcript {

/// A file that is not a transcript, is damaged, or cut off; what() begins with its name and the
/// number of the line.
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

/// Reads a transcript (docs/transcripts.md), or a file with nothing but the daemon's lines. It
/// needs memory for one line, and copies none.
///
/// 1. Make one: it reads the first line. 2. next() until it returns that there is no more.
/// Thread safety: none.
class reader {
 public:
  static constexpr std::size_t default_max_line = std::size_t{1} << 30;

  /// `name` is for messages. Lifetime: `source` outlives the reader.
  /// Errors: transcript_error, also for an empty file; and what the source throws.
  reader(byte_source& source, std::string name, std::size_t max_line = default_max_line);

  /// std::nullopt: the file has only the daemon's lines, and no times.
  [[nodiscard]] const std::optional<header>& head() const noexcept { return header_; }

  /// False at the end. What was read before an error has been delivered.
  /// Errors: as the constructor.
  bool next(entry& out);

 private:
  /// The next line that is not empty, without blanks around it: the child takes these lines, too.
  bool next_line(std::string_view& line);
  bool read_line(std::string_view& line);
  [[noreturn]] void fail(const std::string& message) const;

  byte_source& source_;
  std::string name_;
  std::size_t max_line_;
  tool::line_splitter lines_;
  std::size_t line_number_ = 0;
  std::optional<header> header_;
  std::optional<std::string_view> first_;  // of a file without a header: not yet delivered
  std::string text_;                       // of a line that had to be escaped
};

}  // namespace kclxx::transcript

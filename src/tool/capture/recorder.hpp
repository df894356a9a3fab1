// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

#include "tool/files.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::tool {

/// Writes the transcript of a running dialogue from the bytes of both sides. Only its owner can
/// read the file. It is made without the shard in its name, and renamed at initialize.
///
/// The caller records bytes before it passes them on. An answer is therefore recorded after the
/// line that it answers. docs/transcripts.md has the times and the order of lines.
///
/// When something cannot be written, one line on stderr reports it and nothing more is recorded.
/// Memory: one line of the daemon.
/// Thread safety: all functions may be called from any thread.
/// Blocking: until the file system has taken the bytes.
class recorder {
 public:
  /// How many bytes of a line from the child are recorded, with the length of the whole line.
  static constexpr std::size_t max_child_line = std::size_t{1} << 20;

  /// Errors: std::system_error when the directory or the file cannot be made.
  recorder(const std::string& directory, const std::string& program);

  /// `line_of_side`: daemon_line or child_line, whichever side has written the bytes.
  void add(transcript::entry_kind line_of_side, std::string_view bytes);
  /// `end_of_side`: end_of_input or end_of_output.
  void add_end(transcript::entry_kind end_of_side);
  /// Records the exit with its status, or its signal, and nothing after it. A line of the daemon
  /// that is incomplete then is left out.
  void finish(transcript::entry_kind exit, int number);
  /// Removes the file: the child could not be started.
  void discard();

 private:
  using time = std::chrono::microseconds;
  /// A line that has not ended yet.
  struct line {
    std::size_t max_kept;
    std::string text{};      ///< the first max_kept bytes
    std::size_t length = 0;  ///< the number of all bytes so far
    time began{};
  };

  template <class Function>
  void record(Function function);
  void add_bytes(transcript::entry_kind kind, std::string_view bytes, time now);
  void end_line(transcript::entry_kind kind, time now, bool has_newline);
  void write(const transcript::entry& entry, bool is_unfinished = false);

  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  transcript::header header_;
  std::string directory_;
  std::string suffix_;  ///< the part of the file's name after the shard

  /// Guards all members below, and header_. No two threads write an entry at the same time.
  std::mutex mutex_;
  output_file file_;
  transcript::writer writer_;
  bool has_ended_ = false;
  bool has_header_ = false;
  bool has_seen_daemon_line_ = false;
  line daemon_line_;
  line child_line_{max_child_line};
};

}  // namespace kclxx::tool

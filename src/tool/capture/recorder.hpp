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

/// Writes the transcript of a running dialogue from the bytes of both sides. The file is readable
/// by its owner only. It is created without the shard in its name and renamed at initialize.
///
/// The caller records bytes before it passes them on. An answer is therefore recorded after the
/// line that it answers. docs/replay.md has the times and the order of lines.
///
/// When something cannot be written, one line on stderr reports it and nothing more is recorded.
/// Memory: one line of the daemon.
/// Thread safety: all functions may be called from any thread.
/// Blocking: until the file system took the bytes.
class recorder {
 public:
  /// Of a longer line from the child the beginning is recorded, with the length of the whole.
  static constexpr std::size_t max_child_line = std::size_t{1} << 20;

  /// Errors: std::system_error when the directory or the file cannot be made.
  recorder(const std::string& directory, const std::string& program);

  void add(transcript::entry_kind line_of_side, std::string_view bytes);
  void add_end(transcript::entry_kind end_of_side);
  /// The exit with its status or signal; nothing is recorded after it. A line of the daemon that
  /// is incomplete then is left out.
  void finish(transcript::entry_kind exit, int number);
  /// Removes the file: the child could not be started.
  void discard();

 private:
  using time = std::chrono::microseconds;
  struct line {
    std::size_t max_kept;
    std::string text{};  // what is kept of it
    std::size_t length = 0;
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
  std::string suffix_;  // of the file's name, after the shard
  output_file file_;
  transcript::writer writer_;

  std::mutex mutex_;
  bool has_ended_ = false;
  bool has_header_ = false;
  bool has_name_ = false;  // the first line of the daemon was seen
  line daemon_line_;
  line child_line_{max_child_line};
};

}  // namespace kclxx::tool

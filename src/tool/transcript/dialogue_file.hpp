// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "tool/transcript/entry.hpp"
#include "tool/transcript/transcript_file.hpp"
#include "tool/transcript/writer.hpp"

namespace kclxx::cli {

/// The transcript of a running dialogue, from the bytes of both sides. The file begins under a name
/// without the shard and gets it with initialize.
///
/// A long line of the daemon goes to the file while it comes, so that each byte is in a cache when
/// it is written, and none is copied before; what the child says meanwhile follows it. A line of
/// the daemon has the time of its first byte, one of the child that of its newline.
///
/// Errors: std::system_error when something cannot be written, and std::length_error for a line
/// that no reader takes.
/// Thread safety: none.
class dialogue_file {
 public:
  using time = std::chrono::microseconds;  // since it was made

  dialogue_file(const std::string& directory, std::vector<std::string> command);

  void add_daemon_bytes(time at, std::string_view bytes);
  void add_child_bytes(time at, std::string_view bytes);
  /// What is unfinished then is left out when the child has gone, and else a line of its own.
  void add_event(const transcript::entry& one);
  /// Removes the file again: nothing came of the dialogue.
  void remove() noexcept { file_.remove(); }

 private:
  struct held_entry {
    transcript::entry what;
    std::string text;  // of a line
    bool is_unfinished;
  };

  [[nodiscard]] bool is_in_daemon_line() const noexcept;
  void keep(std::string_view part);
  void write_part(std::string_view part);
  void finish_daemon_line(std::string_view rest, bool has_newline);
  void drop_daemon_line();
  [[nodiscard]] std::string take_back();
  void write_held();
  void write_or_hold(const transcript::entry& one, bool is_unfinished = false);
  void write(const transcript::entry& one, bool is_unfinished = false);
  void begin(const transcript::entry* first);
  void settle_name(std::string_view line);

  transcript::header header_;
  std::string suffix_;  // of the file's name, behind the shard
  std::string directory_;
  output_file file_;
  transcript::writer writer_;
  bool has_begun_ = false;        // the header is written
  bool is_name_settled_ = false;  // the first line of the daemon was seen

  // The daemon's line that has no newline yet: what is in the file, and behind that what is not.
  time began_{};
  std::size_t written_ = 0;   // bytes of the file, with what stands in front of the line
  std::size_t in_front_ = 0;  // of these
  char last_written_ = 0;
  std::string rest_;

  std::string child_text_;        // without a newline yet
  std::vector<held_entry> held_;  // of the child, while a line of the daemon came
  std::size_t held_bytes_ = 0;
};

}  // namespace kclxx::cli

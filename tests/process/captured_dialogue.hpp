// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/temporary_folder.hpp"
#include "tool/process/child_process.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::test {

/// A child under `kclxx capture`, with its own directory for the transcript; this side is the
/// daemon. Whatever waits fails after 30 s.
class captured_dialogue {
 public:
  using error_output = tool::child_process::error_output;

  /// `file_limit`: bytes that a file which the capture writes may have; 0: any number.
  /// `directory` empty: one of its own, removed at the end.
  explicit captured_dialogue(const std::vector<std::string>& child,
                             error_output error = error_output::inherited,
                             std::size_t file_limit = 0, const std::string& directory = "");
  ~captured_dialogue();
  captured_dialogue(const captured_dialogue&) = delete;
  captured_dialogue& operator=(const captured_dialogue&) = delete;

  void send(std::string_view bytes);
  void close_input() { capture_->input.close(); }
  void close_output() { capture_->output.close(); }
  /// Just so many bytes, or up to the end.
  std::string read(std::size_t size) { return read_from(capture_->output.get(), size); }
  std::string rest() { return read(std::string::npos); }
  std::string read_error(std::size_t size) { return read_from(capture_->error.get(), size); }
  std::string rest_of_error() { return read_error(std::string::npos); }
  /// True once nobody reads our end of the input any more.
  [[nodiscard]] bool await_broken_input() const;

  void signal(int number) { capture_->kill(number); }
  /// To the capture and the child, as a terminal or a container does.
  void signal_group(int number);
  tool::child_exit wait();

  /// What was recorded; `error` is the reader's.
  struct recorded {
    std::string name;
    transcript::header head;
    std::string daemon;  ///< its bytes, but for the last newline
    std::string child;
    std::vector<std::string> daemon_lines;
    std::string events;  ///< "end_of_input exit 0 "
    std::string order;   ///< a "d" or a "c" for each line
    std::string error;
    std::size_t cut_length = 0;  ///< of the last line that was too long to be recorded
  };
  [[nodiscard]] recorded transcript() const;
  [[nodiscard]] std::size_t file_count() const;
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }
  /// The most memory that the capture has used so far, in KiB.
  [[nodiscard]] std::size_t peak_memory() const;

 private:
  static std::string read_from(int fd, std::size_t size);

  temporary_folder own_directory_;
  std::filesystem::path directory_;
  std::optional<tool::child_process> capture_;
};

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <poll.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "io/lines.hpp"
#include "support/temporary_folder.hpp"
#include "tool/files.hpp"
#include "tool/process/program.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::test {

/// A child under `kclxx capture`, with a directory of its own for the transcript. The test plays
/// the daemon. Each wait has a limit of 30 s.
class captured_dialogue {
 public:
  using error_output = tool::child_process::error_output;

  /// `file_limit`: how many bytes a file of the capture may have; 0: any number. `directory`: that
  /// of the transcript; empty: a new one, which is removed at the end.
  explicit captured_dialogue(const std::vector<std::string>& child,
                             error_output error = error_output::inherited,
                             std::size_t file_limit = 0, const std::string& directory = "")
      : directory_(directory.empty() ? own_directory_.path() : std::filesystem::path(directory)) {
    std::signal(SIGPIPE, [](int) {});  // not ignored: that would be inherited
    // setsid gives the capture a process group of its own.
    std::vector<std::string> command{"setsid",   KCLXX_TOOL,          "capture",
                                     "--output", directory_.string(), "--"};
    if (file_limit > 0) {
      command = {"setsid",   "/bin/sh",
                 "-c",       "ulimit -f $1; shift; exec \"$@\"",
                 "sh",       std::to_string(file_limit / 512),
                 KCLXX_TOOL, "capture",
                 "--output", directory_.string(),
                 "--"};
    }
    command.insert(command.end(), child.begin(), child.end());
    capture_.emplace(command, error);
  }
  ~captured_dialogue() {
    ::kill(-capture_->pid(), SIGKILL);  // its group, which the child belongs to
    capture_.reset();
  }
  captured_dialogue(const captured_dialogue&) = delete;
  captured_dialogue& operator=(const captured_dialogue&) = delete;

  void send(std::string_view bytes) {
    if (io::write_all(capture_->input.get(), bytes)) throw std::runtime_error("nobody reads");
  }
  void close_input() { capture_->input.close(); }
  void close_output() { capture_->output.close(); }
  /// Reads so many bytes, or up to the end.
  std::string read(std::size_t size) { return read_from(capture_->output.get(), size); }
  std::string rest() { return read(std::string::npos); }
  std::string read_error(std::size_t size) { return read_from(capture_->error.get(), size); }
  std::string rest_of_error() { return read_error(std::string::npos); }
  /// Waits until the capture has closed the input. False: it has not.
  [[nodiscard]] bool await_broken_input() const {
    pollfd broken{capture_->input.get(), 0, 0};
    return ::poll(&broken, 1, limit_milliseconds) == 1 && (broken.revents & POLLERR) != 0;
  }

  void signal(int number) { capture_->kill(number); }
  tool::child_exit wait() {
    using namespace std::chrono_literals;
    const auto how = capture_->wait_until(tool::child_process::clock::now() + 30s);
    if (!how) throw std::runtime_error("kclxx capture does not end");
    return *how;
  }

  /// The content of the transcript.
  struct recorded {
    std::string name;
    transcript::header head;
    std::string daemon;  ///< the daemon's bytes without the last newline
    std::string child;   ///< the child's bytes without the last newline
    std::vector<std::string> daemon_lines;
    std::string events;          ///< "end_of_input exit 0 "
    std::string order;           ///< a "d" or a "c" for each line
    std::string error;           ///< the error of the reader, if there was one
    std::size_t cut_length = 0;  ///< the length of the last line that was too long to be recorded
  };
  [[nodiscard]] recorded transcript() const {
    recorded result;
    try {
      for (const auto& file : std::filesystem::directory_iterator(directory_)) {
        result.name = file.path().filename().string();
      }
      tool::input_file source((directory_ / result.name).string());
      transcript::reader reader(source, result.name);
      result.head = reader.head().value();
      std::string daemon_pending;
      std::string child_pending;
      transcript::entry entry;
      while (reader.next(entry)) {
        switch (entry.kind) {
          case transcript::entry_kind::daemon_line:
            result.order += 'd';
            append(result.daemon, entry, daemon_pending);
            result.daemon_lines.emplace_back(entry.line);
            break;
          case transcript::entry_kind::child_line:
            result.order += 'c';
            append(result.child, entry, child_pending);
            if (entry.whole_length > 0) result.cut_length = entry.whole_length;
            break;
          case transcript::entry_kind::end_of_input:
            result.events += "end_of_input ";
            break;
          case transcript::entry_kind::end_of_output:
            result.events += "end_of_output ";
            break;
          case transcript::entry_kind::exit:
            result.events += "exit " + std::to_string(entry.number) + " ";
            break;
          case transcript::entry_kind::killed:
            result.events += "killed " + std::to_string(entry.number) + " ";
        }
      }
    } catch (const transcript::transcript_error& error) {
      result.error = error.what();
    }
    return result;
  }
  [[nodiscard]] std::size_t file_count() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  /// The most memory that the capture has used so far, in KiB.
  [[nodiscard]] std::size_t peak_memory() const {
    std::ifstream status("/proc/" + std::to_string(capture_->pid()) + "/status");
    for (std::string word; status >> word;) {
      std::size_t size = 0;
      if (word == "VmHWM:" && status >> size) return size;
    }
    throw std::runtime_error("the memory is unknown");
  }

 private:
  static constexpr int limit_milliseconds = 30'000;

  // Adds a newline before each line but the first: the transcript does not tell whether the last
  // line had one.
  static void append(std::string& bytes, const transcript::entry& entry, std::string& pending) {
    bytes += pending;
    pending = "\n";
    bytes += entry.line;
  }
  static std::string read_from(int fd, std::size_t size) {
    std::string text;
    std::vector<char> piece(std::size_t{1} << 18);
    while (text.size() < size) {
      pollfd readable{fd, POLLIN, 0};
      if (::poll(&readable, 1, limit_milliseconds) != 1)
        throw std::runtime_error("nothing to read: " + text);
      const ssize_t n = ::read(fd, piece.data(), std::min(piece.size(), size - text.size()));
      if (n <= 0) break;
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

  temporary_folder own_directory_;
  std::filesystem::path directory_;
  std::optional<tool::child_process> capture_;
};

}  // namespace kclxx::test

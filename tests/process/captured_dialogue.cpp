// SPDX-License-Identifier: Apache-2.0
#include "process/captured_dialogue.hpp"

#include <algorithm>
#include <csignal>
#include <fstream>
#include <poll.h>
#include <stdexcept>
#include <unistd.h>

#include "io/line_writer.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::test {

namespace fs = std::filesystem;

namespace {

constexpr int patience = 30'000;  // milliseconds

// Between the lines only: whether the last one had its newline is not recorded.
void append(std::string& bytes, const transcript::entry& entry, std::string& pending) {
  bytes += pending;
  pending = "\n";
  bytes += entry.line;
}

}  // namespace

captured_dialogue::captured_dialogue(const std::vector<std::string>& child, error_output error,
                                     std::size_t file_limit, const std::string& directory)
    : directory_(directory.empty() ? own_directory_.path() : fs::path(directory)) {
  std::signal(SIGPIPE, [](int) {});  // not ignored: that would be inherited
  // In a group of its own.
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

captured_dialogue::~captured_dialogue() {
  ::kill(-capture_->pid(), SIGKILL);  // its group, which the child belongs to
  capture_.reset();
}

void captured_dialogue::send(std::string_view bytes) {
  if (io::write_all(capture_->input.get(), bytes)) throw std::runtime_error("nobody reads");
}

std::string captured_dialogue::read_from(int fd, std::size_t size) {
  std::string text;
  std::vector<char> piece(std::size_t{1} << 18);
  while (text.size() < size) {
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, patience) != 1) throw std::runtime_error("nothing to read: " + text);
    const ssize_t n = ::read(fd, piece.data(), std::min(piece.size(), size - text.size()));
    if (n <= 0) break;
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  return text;
}

bool captured_dialogue::await_broken_input() const {
  pollfd broken{capture_->input.get(), 0, 0};
  return ::poll(&broken, 1, patience) == 1 && (broken.revents & POLLERR) != 0;
}

tool::child_exit captured_dialogue::wait() {
  using namespace std::chrono_literals;
  const auto how = capture_->wait_until(tool::child_process::clock::now() + 30s);
  if (!how) throw std::runtime_error("kclxx capture does not end");
  return *how;
}

captured_dialogue::recorded captured_dialogue::transcript() const {
  recorded all;
  try {
    for (const auto& file : fs::directory_iterator(directory_)) {
      all.name = file.path().filename().string();
    }
    tool::input_file source((directory_ / all.name).string());
    transcript::reader reader(source, all.name);
    all.head = reader.head().value();
    std::string daemon_pending;
    std::string child_pending;
    transcript::entry entry;
    while (reader.next(entry)) {
      switch (entry.kind) {
        case transcript::entry_kind::daemon_line:
          all.order += 'd';
          append(all.daemon, entry, daemon_pending);
          all.daemon_lines.emplace_back(entry.line);
          break;
        case transcript::entry_kind::child_line:
          all.order += 'c';
          append(all.child, entry, child_pending);
          if (entry.whole_length > 0) all.cut_length = entry.whole_length;
          break;
        case transcript::entry_kind::end_of_input:
          all.events += "end_of_input ";
          break;
        case transcript::entry_kind::end_of_output:
          all.events += "end_of_output ";
          break;
        case transcript::entry_kind::exit:
          all.events += "exit " + std::to_string(entry.number) + " ";
          break;
        case transcript::entry_kind::killed:
          all.events += "killed " + std::to_string(entry.number) + " ";
      }
    }
  } catch (const transcript::transcript_error& error) {
    all.error = error.what();
  }
  return all;
}

std::size_t captured_dialogue::file_count() const {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(directory_), {}));
}

std::size_t captured_dialogue::peak_memory() const {
  std::ifstream status("/proc/" + std::to_string(capture_->pid()) + "/status");
  for (std::string word; status >> word;) {
    std::size_t size = 0;
    if (word == "VmHWM:" && status >> size) return size;
  }
  throw std::runtime_error("the memory is unknown");
}

void captured_dialogue::signal_group(int number) {
  if (::kill(-capture_->pid(), number) == -1) throw std::runtime_error("kill");
}

}  // namespace kclxx::test

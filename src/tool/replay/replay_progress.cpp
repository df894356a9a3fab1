// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_progress.hpp"

#include <algorithm>
#include <iostream>
#include <unistd.h>

namespace kclxx::tool {

namespace {

constexpr const char* clear_line = "\r\x1b[K";

}  // namespace

std::string progress_line(std::uint64_t read, std::uint64_t total, std::uint64_t records) {
  constexpr std::size_t width = 40;
  std::string line;
  if (total > 0) {
    const double part = std::min(static_cast<double>(read) / static_cast<double>(total), 1.0);
    const auto done = static_cast<std::size_t>(part * width);
    const auto percent = static_cast<int>(part * 100);
    line = "[" + std::string(done, '#') + std::string(width - done, '.') + "] " +
           std::to_string(percent) + " %, ";
  }
  return line + std::to_string(records) + " records";
}

progress_bar::progress_bar(std::uint64_t total_bytes)
    : is_terminal_(::isatty(STDERR_FILENO) == 1), total_(total_bytes) {}

progress_bar::~progress_bar() {
  if (is_terminal_) std::cerr << clear_line << std::flush;
}

void progress_bar::show(std::uint64_t read_bytes, std::uint64_t records) {
  if (is_terminal_) {
    std::cerr << clear_line << progress_line(read_bytes, total_, records) << std::flush;
  }
}

}  // namespace kclxx::tool

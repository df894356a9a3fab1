// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace kclxx::tool {

/// A progress bar on stderr, when that is a terminal; else nothing.
/// Thread safety: none.
class progress_bar {
 public:
  explicit progress_bar(std::uint64_t total_bytes);
  /// Takes the bar away.
  ~progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;

  void show(std::uint64_t read_bytes, std::uint64_t records);

 private:
  bool is_terminal_;
  std::uint64_t total_;
};

/// One line without a newline; `total` 0 is unknown, as for a pipe.
std::string progress_line(std::uint64_t read, std::uint64_t total, std::uint64_t records);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <unistd.h>

namespace kclxx::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline int count(std::string_view text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// What a blocking descriptor has until its end.
inline std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  ssize_t n = 0;
  while ((n = ::read(fd, piece, sizeof piece)) > 0) text.append(piece, static_cast<std::size_t>(n));
  return text;
}

/// What an action is refused with; empty: it is not.
inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return {};
}

/// All of it; empty when there is no such file.
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace kclxx::test

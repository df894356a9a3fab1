// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace kclxx::test {

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline int count(std::string_view text, std::string_view part) {
  int result = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++result;
  return result;
}

/// The bytes of a blocking descriptor up to its end.
inline std::string read_all(int fd) {
  std::string text;
  char piece[4096];
  ssize_t n = 0;
  while ((n = ::read(fd, piece, sizeof piece)) > 0) text.append(piece, static_cast<std::size_t>(n));
  return text;
}

/// The message with which an action is refused; empty when it is not refused.
inline std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return {};
}

/// The content of a file; empty when there is no such file.
inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline std::string utf8(char32_t code) {
  const auto byte = [](char32_t value) { return static_cast<char>(value); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xc0 | code >> 6), byte(0x80 | (code & 0x3f))};
  if (code < 0x10000) {
    return {byte(0xe0 | code >> 12), byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
  }
  return {byte(0xf0 | code >> 18), byte(0x80 | (code >> 12 & 0x3f)),
          byte(0x80 | (code >> 6 & 0x3f)), byte(0x80 | (code & 0x3f))};
}

/// The characters that a terminal, or a program that reads logs, could obey instead of showing
/// them.
inline const std::vector<char32_t>& obeyed_codes() {
  static const std::vector<char32_t> codes = [] {
    std::vector<char32_t> result{0x7f,   0x61c,  0x200e, 0x200f, 0x2028, 0x2029, 0x202a, 0x202b,
                                 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0xfeff};
    for (char32_t control = 0; control < 0x20; ++control) result.push_back(control);
    for (char32_t control = 0x80; control < 0xa0; ++control) result.push_back(control);
    return result;
  }();
  return codes;
}

/// A text with all obeyed_codes, and bytes that are not UTF-8: alone, cut off, overlong, a
/// surrogate, and beyond Unicode.
inline std::string obeyed_text() {
  std::string text = "begin";
  for (const char32_t code : obeyed_codes()) text += utf8(code);
  return text + "\x80\x9b\xc0\x80\xe2\x80\xed\xa0\x80\xf4\x90\x80\x80\xff" + "end";
}

/// Whether the text has one of obeyed_codes. A newline at its end does not count.
inline bool has_obeyed(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto& codes = obeyed_codes();
  return std::any_of(codes.begin(), codes.end(), [&](char32_t code) {
    return text.find(utf8(code)) != std::string_view::npos;
  });
}

/// Whether the text has a byte of obeyed_text that UTF-8 never has there.
inline bool has_raw_byte(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0xff || byte == 0xc0 || byte == 0xf4 || byte == 0xed;
  });
}

}  // namespace kclxx::test

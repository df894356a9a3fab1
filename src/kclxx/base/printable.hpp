// SPDX-License-Identifier: Apache-2.0
// The door for text that people read: in a log, on a terminal, in a report.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kclxx::detail {

/// The character at the beginning of a text that is not empty. If that is not UTF-8: `size` is that
/// of the longest part that began well, at least 1, as Unicode recommends for replacing it.
struct character {
  std::size_t size;
  bool is_utf8;
  char32_t code;
};
character first_character(std::string_view text) noexcept;

/// Whether a terminal or a program that reads logs could obey the character instead of showing it:
/// control characters (C0, DEL, C1), line and paragraph separators, marks for the direction of
/// text, the byte order mark.
bool is_obeyed(char32_t code) noexcept;

/// A backslash, u and four hexadecimal digits, as in C and in JSON.
std::string unicode_escape(char32_t code);

inline constexpr std::size_t longest_line = 8192;
inline constexpr std::size_t longest_name = 120;   // of an action, an error; a line's beginning
inline constexpr std::size_t longest_quote = 512;  // a partition key has up to 256 characters

/// Text from elsewhere as one line. What could be obeyed, and bytes that are not UTF-8, are escaped
/// as in C: \n, \x1b, \u202e. A longer result is cut to `most` bytes, with the text's length at its
/// end. What was made printable once is not changed again.
std::string printable(std::string_view text, std::size_t most = longest_line);

/// A text in single quotes, which it cannot close: 'a\'b'.
std::string quoted(std::string_view text);

}  // namespace kclxx::detail

// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/properties.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "tool/daemon/utf16.hpp"

namespace kclxx::tool {

namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\f'; }
bool is_line_end(char c) { return c == '\n' || c == '\r'; }

/// Takes the text apart into logical lines: continued ones joined, comments and blank ones left
/// out. It goes as java.util.Properties does, with all its oddities: after a lone
/// backslash a comment can still begin, and the backslash of a last line without its newline is
/// dropped.
class logical_lines {
 public:
  explicit logical_lines(std::string_view text) : text_(text) {}

  /// False: there is none left.
  bool next() {
    line.clear();
    bool skips_space = true;
    bool is_continued = false;  // the line before ended in a backslash
    bool is_escaped = false;    // by the backslash before
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (skips_space) {
        if (is_space(c) || (!is_continued && is_line_end(c))) {
          take();
          continue;
        }
        skips_space = is_continued = false;
      }
      if (line.empty()) {
        number = at_line_;
        if (c == '#' || c == '!') {
          skip_comment();
          skips_space = true;
          continue;
        }
      }
      take();
      if (!is_line_end(c)) {
        line.push_back(c);
        is_escaped = c == '\\' && !is_escaped;
      } else if (line.empty()) {
        skips_space = true;
      } else if (is_escaped) {
        line.pop_back();
        // The end of the text right after this one byte ends the line, even an empty one.
        if (at_ == text_.size() && !was_pair_) return true;
        skips_space = is_continued = true;
        is_escaped = false;
      } else {
        return true;
      }
    }
    if (line.empty()) return false;
    if (is_escaped) line.pop_back();
    return true;
  }

  std::string line;
  std::size_t number = 0;  ///< the number of its first line in the text

 private:
  // \r\n is one end of a line.
  void take() {
    const char c = text_[at_++];
    if (!is_line_end(c)) return;
    was_pair_ = c == '\r' && at_ < text_.size() && text_[at_] == '\n';
    if (was_pair_) ++at_;
    ++at_line_;
  }

  void skip_comment() {
    while (at_ < text_.size() && !is_line_end(text_[at_])) ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t at_line_ = 1;
  bool was_pair_ = false;  // the last end of a line was \r\n
};

char16_t unicode_escape(std::string_view digits, std::size_t line) {
  std::uint16_t value = 0;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
  if (end - digits.data() != 4) throw properties_error(line, "\\u needs four hexadecimal digits");
  return value;
}

std::string unescape(std::string_view raw, std::size_t line) {
  std::u16string text;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    char c = raw[i];
    if (c == '\\' && i + 1 < raw.size()) {
      c = raw[++i];
      if (c == 'u') {
        text.push_back(unicode_escape(raw.substr(i + 1, 4), line));
        i += 4;
        continue;
      }
      if (c == 't') c = '\t';
      if (c == 'n') c = '\n';
      if (c == 'r') c = '\r';
      if (c == 'f') c = '\f';
    }
    text.push_back(static_cast<unsigned char>(c));
  }
  return to_utf8(text);
}

property parse_line(std::string_view line, std::size_t number) {
  std::size_t key_end = 0;
  for (bool is_escaped = false; key_end < line.size(); ++key_end) {
    const char c = line[key_end];
    if (!is_escaped && (c == '=' || c == ':' || is_space(c))) break;
    is_escaped = c == '\\' && !is_escaped;
  }
  std::size_t value = key_end;
  while (value < line.size() && is_space(line[value])) ++value;
  if (value < line.size() && (line[value] == '=' || line[value] == ':')) ++value;
  while (value < line.size() && is_space(line[value])) ++value;
  return {unescape(line.substr(0, key_end), number), unescape(line.substr(value), number), number,
          ""};
}

std::string escape(std::string_view text) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string result;
  for (const char16_t c : to_utf16(text)) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                          (c >= 'a' && c <= 'z') || c == '.' || c == '_' || c == '-' || c == '/';
    if (is_plain) {
      result.push_back(static_cast<char>(c));
    } else if (c > ' ' && c < 0x7F) {
      result.append({'\\', static_cast<char>(c)});
    } else if (c == ' ') {
      result += "\\ ";
    } else {
      result += "\\u";
      for (int shift = 12; shift >= 0; shift -= 4) {
        result.push_back(digits[static_cast<std::size_t>(c >> shift) & 0xF]);
      }
    }
  }
  return result;
}

}  // namespace

properties parse_properties(std::string_view text) {
  properties all;
  logical_lines lines(text);
  while (lines.next()) all.push_back(parse_line(lines.line, lines.number));
  return all;
}

std::string write_properties(const properties& all) {
  std::string text;
  for (const property& one : all) text += escape(one.key) + "=" + escape(one.value) + "\n";
  return text;
}

const property* find(const properties& all, std::string_view key) {
  const auto found =
      std::find_if(all.rbegin(), all.rend(), [key](const property& one) { return one.key == key; });
  return found == all.rend() ? nullptr : &*found;
}

}  // namespace kclxx::tool

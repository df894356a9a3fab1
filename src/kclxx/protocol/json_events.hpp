// SPDX-License-Identifier: Apache-2.0
// A line of JSON as events, by nlohmann_json's parser. The parser copies each string, refuses
// numbers that no double holds, takes a NUL for the end and skips a byte order mark. The wire needs
// none of that, so the classes here set it right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "protocol/plain_text.hpp"

namespace kclxx::protocol {

/// A value of a line; for an array or an object, its beginning.
struct json_value {
  enum class type { null, boolean, integer, other_number, string, array, object };

  type kind;
  std::int64_t integer = 0;
  double number = 0;        ///< of other_number, which no std::int64_t holds. It may be infinite.
  std::string_view text{};  ///< the string; other_number and a boolean as they are written
};

/// A double that the parser takes for finite, whatever its value is.
struct unbounded_double {
  double value;

  // NOLINTBEGIN(google-explicit-constructor): the parser converts it
  unbounded_double() = default;
  constexpr unbounded_double(double number) : value(number) {}
  operator double&() { return value; }
  operator double() const {
    using limits = std::numeric_limits<double>;
    return std::clamp(value, limits::lowest(), limits::max());
  }
  // NOLINTEND(google-explicit-constructor)
};

/// The characters of a line for the parser. It gets only the quotes of a string without escapes:
/// that text is in the line already.
class json_line {
 public:
  /// Precondition: line[0, size) is UTF-8 without a NUL, and at least eight zeros follow it.
  json_line(char* line, std::size_t size) : at_(line), end_(line + size) {}

  class iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = char;

    /// The end of every line.
    iterator() = default;
    explicit iterator(json_line& line) : line_(&line) {}
    char operator*() const noexcept { return *line_->at_; }
    iterator& operator++() noexcept {
      line_->pass_character();
      return *this;
    }
    friend bool operator==(const iterator& a, const iterator& b) noexcept {
      return a.is_at_end() == b.is_at_end();
    }
    friend bool operator!=(const iterator& a, const iterator& b) noexcept { return !(a == b); }

   private:
    [[nodiscard]] bool is_at_end() const noexcept {
      if (line_ == nullptr) return true;
      if (line_->at_ != line_->end_) return false;
      line_->is_too_short_ = true;
      return true;
    }

    json_line* line_ = nullptr;
  };

  /// Whether the parser wanted a character after the last one.
  [[nodiscard]] bool is_too_short() const noexcept { return is_too_short_; }
  /// The last string began here, after its quote.
  [[nodiscard]] char* string_begin() const noexcept { return string_begin_; }
  /// Whether the last string has no escapes, so that the line has its text.
  [[nodiscard]] bool is_string_plain() const noexcept { return plain_end_ != nullptr; }
  /// The text of the last string, which is plain.
  [[nodiscard]] std::string_view plain_string() const noexcept {
    return {string_begin_, static_cast<std::size_t>(plain_end_ - string_begin_)};
  }

 private:
  enum class place { outside, in_string, after_backslash };

  void pass_character() noexcept {
    const char passed = *at_++;
    if (place_ == place::outside) {
      if (passed == '"') begin_string();
    } else if (place_ == place::after_backslash) {
      place_ = place::in_string;
    } else if (passed == '\\') {
      place_ = place::after_backslash;
    } else if (passed == '"') {
      place_ = place::outside;
    }
  }

  void begin_string() noexcept {
    place_ = place::in_string;
    string_begin_ = at_;
    plain_end_ = take_plain_text(at_).end;
    if (*plain_end_ == '"') {
      at_ += plain_end_ - at_;
    } else {
      plain_end_ = nullptr;
    }
  }

  char* at_;
  const char* end_;
  char* string_begin_ = nullptr;
  const char* plain_end_ = nullptr;
  place place_ = place::outside;
  bool is_too_short_ = false;
};

/// The parser calls it with events. `Walk` has these functions:
///   void on_key(std::string_view)     a field of an object that was entered
///   void on_value(const json_value&)  a scalar; or an array or object that is not entered
///   bool enters(json_value::type)     whether events of this array or object are wanted
///   void on_end()                     an array or object that was entered has ended
///   void on_bad_json()                always throws
///   bool is_done()                    no further event is wanted
/// A text lives as long as the call, unless the line has it (json_line::is_string_plain).
template <class Walk>
class json_events {
 public:
  // The parser knows these functions by their names.
  bool null() { return take_value({json_value::type::null}); }
  bool boolean(bool is_true) {
    return take_value({json_value::type::boolean, 0, 0, is_true ? "true" : "false"});
  }
  bool number_integer(std::int64_t number) {
    return take_value({json_value::type::integer, number});
  }
  bool number_unsigned(std::uint64_t number) {
    constexpr auto max = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    if (number <= max) return number_integer(static_cast<std::int64_t>(number));
    return number_float(static_cast<double>(number), std::to_string(number));
  }
  bool number_float(unbounded_double number, const std::string& text) {
    return take_value({json_value::type::other_number, 0, number.value, text});
  }
  bool string(const std::string& text) {
    return take_value({json_value::type::string, 0, 0, string_text(text)});
  }
  template <class Bytes>
  bool binary(Bytes&) {  // JSON has no such value
    return false;
  }
  bool start_object(std::size_t) { return begin(json_value::type::object); }
  bool start_array(std::size_t) { return begin(json_value::type::array); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(const std::string& name) {
    if (skipped_levels_ == 0) walk().on_key(string_text(name));
    return true;
  }
  template <class Exception>
  bool parse_error(std::size_t, const std::string&, const Exception&) {
    walk().on_bad_json();
    return false;
  }

 protected:
  explicit json_events(json_line& line) : line_(line) {}

  /// Nesting takes a bit of memory for each level, and no stack.
  void parse() {
    using json = nlohmann::basic_json<std::map, std::vector, std::string, bool, std::int64_t,
                                      std::uint64_t, unbounded_double>;
    json::sax_parse(json_line::iterator(line_), json_line::iterator(), this);
  }

  json_line& line_;

 private:
  Walk& walk() { return static_cast<Walk&>(*this); }
  std::string_view string_text(std::string_view unescaped) const {
    return line_.is_string_plain() ? line_.plain_string() : unescaped;
  }
  bool take_value(const json_value& value) {
    if (skipped_levels_ > 0) return true;
    walk().on_value(value);
    return !walk().is_done();
  }
  bool begin(json_value::type kind) {
    if (skipped_levels_ > 0) {
      ++skipped_levels_;
    } else if (!walk().enters(kind)) {
      walk().on_value({kind});
      skipped_levels_ = 1;
    }
    return true;
  }
  bool end() {
    if (skipped_levels_ > 0) {
      --skipped_levels_;
    } else {
      walk().on_end();
    }
    return true;
  }

  std::size_t skipped_levels_ = 0;
};

}  // namespace kclxx::protocol

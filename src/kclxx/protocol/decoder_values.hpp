// SPDX-License-Identifier: Apache-2.0
// JSON values as the wire has them, with errors that name the field. decoder.cpp alone includes it;
// besides it json_string.cpp alone knows simdjson.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <simdjson.h>
#include <string>
#include <string_view>
#include <utility>

#include "protocol/base64.hpp"
#include "protocol/decimal.hpp"
#include "protocol/decoder.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::protocol {

namespace ondemand = simdjson::ondemand;

// Thrown here and caught in decoder.cpp: a bad line is the end of the process, not a path to make
// fast.
struct failure {
  decode_error error;
};

[[noreturn]] inline void fail(std::string field, std::string problem) {
  throw failure{{std::move(problem), std::move(field)}};
}

template <class T>
T checked(simdjson::simdjson_result<T> result) {
  T value;
  if (const auto error = std::move(result).get(value)) {
    fail({}, std::string("is not valid JSON: ") + simdjson::error_message(error));
  }
  return value;
}

// A field's name is put together only when it is needed, for an error.
struct field_name {
  const char* name;
  std::ptrdiff_t record = -1;
  [[nodiscard]] std::string text() const {
    return (record < 0 ? std::string() : "records[" + std::to_string(record) + "].") + name;
  }
};

/// Takes values of one line. Texts are views into the line, or into the arena where an escape had
/// to be undone.
class values {
 public:
  /// `replaced` is set when text had to be replaced by U+FFFD.
  values(std::deque<std::string>& arena, bool& replaced) : arena_(arena), replaced_(replaced) {}

  std::optional<std::string_view> string(ondemand::value& value, field_name name);
  std::string required_string(ondemand::value& value, field_name name);
  /// std::nullopt for a time that no record can show. `unknown` names the first one.
  static std::optional<std::chrono::milliseconds> time(ondemand::value& value, field_name name,
                                                       std::string& unknown);
  static std::uint64_t sub_sequence(ondemand::value& value, field_name name);
  /// Decoded from base64, in place.
  std::optional<std::string_view> data(ondemand::value& value, field_name name);

 private:
  static std::string_view token(ondemand::value& value);

  std::deque<std::string>& arena_;
  bool& replaced_;
};

/// A scalar's text as it was written. It reaches to the next structural character, and so may have
/// white space after it.
inline std::string_view values::token(ondemand::value& value) {
  std::string_view text = value.raw_json_token();
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r' ||
                           text.back() == '\n')) {
    text.remove_suffix(1);
  }
  return text;
}

inline std::optional<std::string_view> values::string(ondemand::value& value, field_name name) {
  const std::string_view text = token(value);
  if (text == "null") return std::nullopt;
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') {
    fail(name.text(), "is not a string");
  }
  const std::string_view inside = text.substr(1, text.size() - 2);
  if (inside.find('\\') == std::string_view::npos) return inside;
  auto plain = unescape(text, replaced_);
  if (!plain) fail(name.text(), "has a bad escape");
  return arena_.emplace_back(std::move(*plain));
}

inline std::string values::required_string(ondemand::value& value, field_name name) {
  const auto text = string(value, name);
  if (!text) fail(name.text(), "is null");
  return std::string(*text);
}

inline std::optional<std::chrono::milliseconds> values::time(ondemand::value& value,
                                                             field_name name,
                                                             std::string& unknown) {
  const std::string_view text = token(value);
  if (text == "null") return std::nullopt;
  constexpr std::int64_t limit = most_milliseconds;
  std::int64_t whole = 0;
  if (value.get_int64().get(whole) == simdjson::SUCCESS) {
    if (whole >= -limit && whole <= limit) return std::chrono::milliseconds(whole);
  } else {
    // Below 2^53, so that a double has it exactly.
    constexpr auto end = static_cast<double>(limit + 1);
    double number = 0;
    if (value.get_double().get(number) == simdjson::SUCCESS && number > -end && number < end) {
      return std::chrono::milliseconds(static_cast<std::int64_t>(number));
    }
  }
  checked(value.type());
  if (unknown.empty()) unknown = name.text() + " is " + std::string(text.substr(0, 40));
  return std::nullopt;
}

inline std::uint64_t values::sub_sequence(ondemand::value& value, field_name name) {
  if (token(value) == "null") return 0;
  // The daemon's own type is a Java long: it drops a checkpoint with a higher one.
  std::int64_t number = 0;
  if (value.get_int64().get(number) != simdjson::SUCCESS || number < 0) {
    fail(name.text(), "is not an integer from 0 on");
  }
  return static_cast<std::uint64_t>(number);
}

inline std::optional<std::string_view> values::data(ondemand::value& value, field_name name) {
  const auto text = string(value, name);
  if (!text) return std::nullopt;
  // In place: the text belongs to the line or to the arena, both of which are ours to write.
  char* begin = const_cast<char*>(text->data());
  const base64_result decoded = decode_base64(begin, text->size());
  if (decoded.error != nullptr) {
    fail(name.text(), std::string(decoded.error) + " at character " + std::to_string(decoded.size));
  }
  return std::string_view(begin, decoded.size);
}

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
// How the tool reads JSON from outside: transcripts, parked records, lease tables.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kclxx::tool {

/// The text is no JSON, is nested too deep, or has a wrong field; what() names the place in the
/// text, or the field.
class foreign_json_error : public std::runtime_error {
 public:
  explicit foreign_json_error(const std::string& message, bool is_cut_off = false)
      : std::runtime_error(message), is_cut_off_(is_cut_off) {}
  /// The text ended too early.
  [[nodiscard]] bool is_cut_off() const noexcept { return is_cut_off_; }

 private:
  bool is_cut_off_;
};

/// How deep values may be nested. A copy or a dump() makes a call for each level, so more levels
/// could exhaust the stack.
inline constexpr int max_foreign_levels = 100;

/// Errors: foreign_json_error.
inline nlohmann::json parse_foreign(std::string_view text) {
  using nlohmann::json;
  // The parser would take a NUL for the end of the text.
  if (text.find('\0') != std::string_view::npos)
    throw foreign_json_error("is no JSON: it has a NUL");
  try {
    return json::parse(text, [](int level, json::parse_event_t, const json&) {
      if (level <= max_foreign_levels) return true;
      throw foreign_json_error("is nested deeper than " + std::to_string(max_foreign_levels) +
                               " levels");
    });
  } catch (const json::parse_error& error) {
    const std::string_view before = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const auto column = before.size() - (before.rfind('\n') + 1) + 1;
    throw foreign_json_error("is no JSON: wrong or cut off at line " + std::to_string(line) +
                                 ", column " + std::to_string(column),
                             error.byte > text.size());
  } catch (const json::out_of_range&) {
    throw foreign_json_error("has a number that is too large");
  }
}

/// The field of this name; null when `object` is no object, or has no such field, or JSON's null in
/// it.
inline const nlohmann::json* find_foreign(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// The field's text; std::nullopt when find_foreign() gives null. Errors: foreign_json_error.
inline std::optional<std::string> find_foreign_text(const nlohmann::json& object,
                                                    const char* name) {
  const auto* const found = find_foreign(object, name);
  if (found == nullptr) return std::nullopt;
  if (!found->is_string()) throw foreign_json_error(std::string("\"") + name + "\" is no text");
  return found->get<std::string>();
}

/// The field's text. Errors: foreign_json_error, also when there is no such field.
inline std::string foreign_text(const nlohmann::json& object, const char* name) {
  auto found = find_foreign_text(object, name);
  if (!found) throw foreign_json_error(std::string("\"") + name + "\" is missing");
  return *std::move(found);
}

/// The field's whole number; std::nullopt when find_foreign() gives null.
/// Errors: foreign_json_error, also when it is not in the range.
inline std::optional<std::int64_t> find_foreign_number(
    const nlohmann::json& object, const char* name,
    std::int64_t min = std::numeric_limits<std::int64_t>::min(),
    std::int64_t max = std::numeric_limits<std::int64_t>::max()) {
  const auto* const found = find_foreign(object, name);
  if (found == nullptr) return std::nullopt;
  const bool fits =
      found->is_number_integer() &&
      (!found->is_number_unsigned() ||
       found->get<std::uint64_t>() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()});
  const std::int64_t value = fits ? found->get<std::int64_t>() : 0;
  if (fits && value >= min && value <= max) return value;
  throw foreign_json_error(std::string("\"") + name + "\" is no whole number from " +
                           std::to_string(min) + " to " + std::to_string(max));
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "daemon_model/lines.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <limits>
#include <map>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "protocol/base64.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::daemon_model {

using protocol::action_kind;

namespace {

constexpr std::string_view null = "null";

void append_number(std::string& out, std::int64_t value) {
  char digits[20];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

void append_number_or_null(std::string& out, const std::optional<std::int64_t>& value) {
  if (value) {
    append_number(out, *value);
  } else {
    out.append(null);
  }
}

/// Quotes as the daemon does: it escapes only what must be escaped, with capital hexadecimal
/// digits.
void append_text(std::string& out, std::string_view text) {
  constexpr std::string_view hex = "0123456789ABCDEF";
  constexpr std::string_view short_forms = "btn?fr";  // U+0008 to U+000D
  out += '"';
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out.append({'\\', c});
    } else if (code >= 8 && code <= 13 && code != 11) {
      out.append({'\\', short_forms[code - 8U]});
    } else if (code < 0x20) {
      out.append("\\u00").append({hex[code >> 4], hex[code & 15]});
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_text_or_null(std::string& out, const std::optional<std::string_view>& text) {
  if (text) {
    append_text(out, *text);
  } else {
    out.append(null);
  }
}

void append_record(std::string& out, const record& source) {
  const auto [data, partition_key, sequence_number, sub_sequence_number, arrival] =
      source.as_fields();
  out.append("{\"data\":");
  if (data) {
    out += '"';
    protocol::append_base64(out, *data);
    out += '"';
  } else {
    out.append(null);
  }
  out.append(",\"partitionKey\":");
  append_text_or_null(out, partition_key);
  out.append(",\"sequenceNumber\":\"").append(sequence_number);
  out.append("\",\"approximateArrivalTimestamp\":");
  append_number_or_null(out,
                        arrival ? std::optional(std::int64_t{arrival->count()}) : std::nullopt);
  out.append(",\"subSequenceNumber\":");
  append_number(out, static_cast<std::int64_t>(sub_sequence_number));
  out.append(",\"action\":\"record\"}");
}

}  // namespace

std::string action_line(action_kind kind) {
  return R"({"action":")" + std::string(protocol::action_name(kind)) + R"("})";
}

std::string initialize_line(std::string_view shard_id, const sequence_position& position) {
  std::string out = "{\"action\":\"initialize\",\"shardId\":";
  append_text(out, shard_id);
  out.append(",\"sequenceNumber\":");
  append_text(out, position.sequence_number());
  out.append(",\"subSequenceNumber\":");
  append_number(out, static_cast<std::int64_t>(position.sub_sequence_number()));
  out += '}';
  return out;
}

std::string process_records_line(std::span<const record> records,
                                 std::optional<std::int64_t> millis_behind_latest) {
  std::string out = "{\"action\":\"processRecords\",\"records\":[";
  bool is_first = true;
  for (const record& record : records) {
    if (!is_first) out += ',';
    is_first = false;
    append_record(out, record);
  }
  out.append("],\"millisBehindLatest\":");
  append_number_or_null(out, millis_behind_latest);
  out += '}';
  return out;
}

std::string checkpoint_line(const std::optional<std::string>& sequence_number,
                            std::optional<std::int64_t> sub_sequence_number,
                            const std::optional<std::string>& error) {
  std::string out = "{\"action\":\"checkpoint\",\"sequenceNumber\":";
  append_text_or_null(out, sequence_number);
  out.append(",\"subSequenceNumber\":");
  append_number_or_null(out, sub_sequence_number);
  out.append(",\"error\":");
  append_text_or_null(out, error);
  out += '}';
  return out;
}

// The daemon's reading of a child's line, by nlohmann_json's event parser. Where the two libraries
// differ on purpose is below; tests/host/conformance compares them.

namespace {

using nlohmann::json;
using reason = ignored_line::reason;

/// The text without the blanks at both ends: the daemon takes each character up to U+0020 for one.
std::string_view trimmed(std::string_view text) noexcept {
  const auto is_trimmed = [](char c) { return static_cast<unsigned char>(c) <= ' '; };
  while (!text.empty() && is_trimmed(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_trimmed(text.back())) text.remove_suffix(1);
  return text;
}

/// A number of 64 bits: ASCII digits, one sign, no blanks. std::nullopt: it is none, or too large.
std::optional<std::int64_t> whole_number(std::string_view text) noexcept {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return std::nullopt;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

enum class kind { null, boolean, integer, too_large, floating, text, nested };

struct value {
  kind what = kind::null;
  std::string text;   // scalars as the daemon reads them for a text
  double number = 0;  // of a floating number, as the daemon parses it: 0 when it is too small
};

/// Collects the fields of one object at the top; ignores what is nested.
class field_collector : public json::json_sax_t {
 public:
  std::map<std::string, value> fields;
  bool is_object = false;
  bool is_null = false;
  bool has_action_twice = false;

  bool null() override {
    is_null = depth_ == 0;
    return take({kind::null, {}});
  }
  bool boolean(bool b) override { return take({kind::boolean, b ? "true" : "false"}); }
  bool number_integer(number_integer_t n) override {
    return take({kind::integer, std::to_string(n)});
  }
  bool number_unsigned(number_unsigned_t n) override {
    const bool fits = n <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
    return take({fits ? kind::integer : kind::too_large, std::to_string(n)});
  }
  bool number_float(number_float_t number, const string_t& text) override {
    const bool has_fraction = text.find_first_of(".eE") != string_t::npos;
    return take({has_fraction ? kind::floating : kind::too_large, text, number});
  }
  bool string(string_t& text) override { return take({kind::text, std::move(text)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    if (depth_ == 0) is_object = true;
    if (depth_ == 1) take({kind::nested, {}});
    ++depth_;
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      has_action_twice |= name == "action" && fields.contains(name);
      key_ = std::move(name);
    }
    return true;
  }
  bool end_object() override { return --depth_ >= 0; }
  bool start_array(std::size_t) override {
    if (depth_ == 1) take({kind::nested, {}});
    ++depth_;
    return true;
  }
  bool end_array() override { return --depth_ >= 0; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) override {
    return false;
  }

 private:
  bool take(value field) {
    if (depth_ == 1 && is_object) fields.insert_or_assign(key_, std::move(field));
    return true;
  }

  int depth_ = 0;
  std::string key_;
};

/// A field with a text: scalars are taken as they are written.
bool read_text(const value& source, std::optional<std::string>& result) {
  if (source.what == kind::nested) return false;
  if (source.what == kind::null) {
    result = std::nullopt;
  } else {
    result = source.text;
  }
  return true;
}

/// A field with an integer of 64 bits: fractions are cut off, text is parsed, empty text is null.
bool read_long(const value& source, std::optional<std::int64_t>& result) {
  result = std::nullopt;
  switch (source.what) {
    case kind::null:
      return true;
    case kind::integer:
      result = whole_number(source.text);
      return result.has_value();
    case kind::floating: {
      constexpr double limit = 9223372036854775808.0;
      if (!(source.number >= -limit && source.number < limit)) return false;
      result = static_cast<std::int64_t>(source.number);
      return true;
    }
    case kind::text: {
      const std::string_view text = trimmed(source.text);
      if (text.empty() || text == "null") return true;
      result = whole_number(text);
      return result.has_value();
    }
    case kind::boolean:
    case kind::too_large:
    case kind::nested:
      return false;
  }
  return false;
}

struct shape {
  std::string_view action;
  std::array<std::string_view, 4> fields;
};

/// The messages that the daemon can read, with the fields that it knows.
constexpr std::array<shape, 8> shapes{{
    {"status", {"responseFor"}},
    {"checkpoint", {"sequenceNumber", "subSequenceNumber", "error"}},
    {"initialize", {"shardId", "sequenceNumber", "subSequenceNumber"}},
    {"processRecords", {"records", "millisBehindLatest"}},
    {"shutdown", {"reason"}},
    {"leaseLost", {}},
    {"shardEnded", {}},
    {"shutdownRequested", {}},
}};

child_message typed(const field_collector& collected) {
  const auto action = collected.fields.find("action");
  if (action == collected.fields.end() || action->second.what != kind::text) {
    return ignored_line{reason::no_action, "it has no action"};
  }
  // The daemon reads the first action before the fields, and the second one as an unknown field.
  if (collected.has_action_twice) return ignored_line{reason::two_actions, "it has two actions"};
  const std::string& name = action->second.text;
  const auto known = std::find_if(shapes.begin(), shapes.end(),
                                  [&](const shape& shape) { return shape.action == name; });
  if (known == shapes.end()) {
    return ignored_line{reason::unknown_action, "'" + name + "' is no action"};
  }
  child_status status;
  child_checkpoint checkpoint;
  std::optional<std::string> error;
  for (const auto& [field, content] : collected.fields) {
    if (field == "action") continue;
    const auto& fields = known->fields;
    if (field.empty() || std::find(fields.begin(), fields.end(), field) == fields.end()) {
      return ignored_line{reason::unknown_field,
                          "the daemon knows no field '" + field + "' in " + name};
    }
    const bool is_fine =
        field == "responseFor"         ? read_text(content, status.response_for)
        : field == "sequenceNumber"    ? read_text(content, checkpoint.sequence_number)
        : field == "subSequenceNumber" ? read_long(content, checkpoint.sub_sequence_number)
        : field == "error"             ? read_text(content, error)
                                       : true;
    if (!is_fine) {
      return ignored_line{reason::wrong_type,
                          name + "'s " + field + " has a type that the daemon cannot read"};
    }
  }
  if (name == "status") return status;
  if (name == "checkpoint") return checkpoint;
  return unexpected_message{name};
}

/// Whether the word at the beginning of a text, which begins with null, continues as an identifier.
bool is_word_longer(std::string_view text) {
  const std::string_view suffix = text.substr(text.find("null") + 4);
  if (suffix.empty() || suffix.starts_with("\xef\xbf\xbd")) return false;
  const auto next = static_cast<unsigned char>(suffix.front());
  return std::isalnum(next) != 0 || next == '_' || next >= 0x80;
}

}  // namespace

child_message parse_child_message(std::string_view line) {
  // The daemon's reader takes a carriage return for the end of a line, too.
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.empty()) return blank{};
  // The daemon replaces bytes that are not UTF-8 by U+FFFD before it parses.
  const std::string text = protocol::replace_invalid_utf8(line);
  if (text.starts_with("\xef\xbb\xbf")) return ignored_line{reason::not_json, "a byte order mark"};
  const ignored_line not_json{reason::not_json, "not JSON"};
  field_collector fields;
  constexpr bool strict = false;  // what follows the object is not looked at
  const bool parsed =
      json::sax_parse(text.begin(), text.end(), &fields, json::input_format_t::json, strict);
  if (!parsed) return not_json;
  if (fields.is_null) {
    if (is_word_longer(text)) return not_json;
    return null_message{};
  }
  if (!fields.is_object) return ignored_line{reason::not_an_object, "it is no object"};
  return typed(fields);
}

}  // namespace kclxx::daemon_model

// SPDX-License-Identifier: Apache-2.0
#include "daemon_model/lines.hpp"

#include <charconv>

#include "protocol/base64.hpp"

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

/// As Jackson quotes: only what must be escaped is, with capital hexadecimal digits.
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

std::string_view action_name(action_kind kind, kcl version) {
  const bool is_ending = kind == action_kind::lease_lost || kind == action_kind::shard_ended;
  return is_ending && version != kcl::v2_1 ? "shutdown" : protocol::action_name(kind);
}

std::string action_line(action_kind kind, kcl version) {
  const std::string_view name = action_name(kind, version);
  std::string line = R"({"action":")" + std::string(name) + '"';
  if (name == "shutdown") {
    const bool is_end = kind == action_kind::shard_ended;
    const bool is_first = version == kcl::v1;
    line.append(R"(,"reason":")");
    line.append(is_end ? (is_first ? "TERMINATE" : "SHARD_END")
                       : (is_first ? "ZOMBIE" : "LEASE_LOST"));
    line += '"';
  }
  return line + '}';
}

std::string initialize_line(std::string_view shard_id,
                            const std::optional<sequence_position>& position) {
  std::string out = "{\"action\":\"initialize\",\"shardId\":";
  append_text(out, shard_id);
  out.append(",\"sequenceNumber\":");
  if (position) {
    append_text(out, position->sequence_number());
    out.append(",\"subSequenceNumber\":");
    append_number(out, static_cast<std::int64_t>(position->sub_sequence_number()));
  } else {
    out.append("null,\"subSequenceNumber\":null");
  }
  out += '}';
  return out;
}

void append_process_records(std::string& out, std::span<const record> records,
                            std::optional<std::int64_t> millis_behind_latest) {
  out.append("{\"action\":\"processRecords\",\"records\":[");
  bool is_first = true;
  for (const record& each : records) {
    if (!is_first) out += ',';
    is_first = false;
    append_record(out, each);
  }
  out.append("],\"millisBehindLatest\":");
  append_number_or_null(out, millis_behind_latest);
  out += '}';
}

std::string process_records_line(std::span<const record> records,
                                 std::optional<std::int64_t> millis_behind_latest) {
  std::string out;
  append_process_records(out, records, millis_behind_latest);
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

}  // namespace kclxx::daemon_model

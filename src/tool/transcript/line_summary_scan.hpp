// SPDX-License-Identifier: Apache-2.0
// A short cut for lines as the daemon writes them: no spaces, no escapes in what matters. Measured
// on 1 KiB records it takes a third of simdjson's time. Anything else gives std::nullopt, and the
// careful way decides.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "protocol/decimal.hpp"
#include "protocol/highest_position.hpp"
#include "tool/transcript/line_summary.hpp"

namespace kclxx::transcript {

/// How many bytes this base64 encodes.
inline std::size_t decoded_size(std::string_view base64) noexcept {
  std::size_t padding = 0;
  while (padding < 2 && base64.size() > padding && base64[base64.size() - 1 - padding] == '=') {
    ++padding;
  }
  const std::size_t whole = base64.size() / 4 * 3;
  return whole - std::min(padding, whole);
}

class summary_scan {
 public:
  explicit summary_scan(std::string_view line) : rest_(line) {}

  /// Of a batch only.
  std::optional<line_summary> take();

 private:
  struct record_fields {
    std::string_view data;
    std::string_view sequence_number;
    std::uint64_t sub_sequence_number = 0;
  };

  bool eat(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  /// The inside of a string that has no escape in front of its closing quote. The first quote that
  /// has none is the end, whatever comes before.
  bool string(std::string_view& inside) {
    if (!eat("\"")) return false;
    const auto* end = static_cast<const char*>(std::memchr(rest_.data(), '"', rest_.size()));
    if (end == nullptr) return false;
    const auto size = static_cast<std::size_t>(end - rest_.data());
    if (size > 0 && rest_[size - 1] == '\\') return false;
    inside = rest_.substr(0, size);
    rest_.remove_prefix(size + 1);
    return true;
  }
  bool null_or_string(std::string_view& inside) { return eat("null") || string(inside); }
  template <class Number>
  bool number(Number& value) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return true;
  }
  bool record(record_fields& to);
  bool records(line_summary& to);

  std::string_view rest_;
};

inline bool summary_scan::record(record_fields& to) {
  std::string_view key;
  std::string_view ignored;
  std::int64_t number_ignored = 0;
  if (!eat("{")) return false;
  do {
    if (!string(key) || !eat(":")) return false;
    if (key == "data") {
      if (!null_or_string(to.data)) return false;
    } else if (key == "sequenceNumber") {
      if (!string(to.sequence_number)) return false;
    } else if (key == "subSequenceNumber") {
      if (!eat("null") && !number(to.sub_sequence_number)) return false;
    } else if (key == "approximateArrivalTimestamp") {
      if (!eat("null") && !number(number_ignored)) return false;
    } else if (key == "action" || key == "partitionKey") {
      if (!null_or_string(ignored)) return false;
    } else {
      return false;
    }
  } while (eat(","));
  return eat("}") && protocol::is_sequence_number(to.sequence_number) &&
         to.sub_sequence_number <= std::uint64_t{INT64_MAX};
}

inline bool summary_scan::records(line_summary& to) {
  protocol::highest_position highest;
  if (!eat("[")) return false;
  if (eat("]")) return true;
  do {
    record_fields one;
    if (!record(one)) return false;
    ++to.records;
    to.data_bytes += decoded_size(one.data);
    highest.take(one.sequence_number, one.sub_sequence_number);
  } while (eat(","));
  to.position = highest.get();
  return eat("]");
}

inline std::optional<line_summary> summary_scan::take() {
  line_summary result;
  if (!eat(R"({"action":"processRecords","records":)") || !records(result) ||
      !eat(R"(,"millisBehindLatest":)")) {
    return std::nullopt;
  }
  std::int64_t behind = 0;
  if (!eat("null")) {
    constexpr std::int64_t most = protocol::most_milliseconds;
    if (!number(behind) || behind < -most || behind > most) return std::nullopt;
    result.millis_behind_latest = std::chrono::milliseconds(behind);
  }
  if (rest_ != "}") return std::nullopt;
  result.kind = line_kind::process_records;
  result.action = "processRecords";
  return result;
}

}  // namespace kclxx::transcript

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>

#include "protocol/decoder.hpp"

namespace kclxx::test {

/// What became of a line.
struct decoding {
  [[nodiscard]] bool is_error() const {
    return std::holds_alternative<protocol::decode_error>(result);
  }
  [[nodiscard]] const protocol::decode_error& error() const {
    return std::get<protocol::decode_error>(result);
  }
  [[nodiscard]] const protocol::message& message() const {
    return std::get<protocol::message>(result);
  }
  template <class Body>
  [[nodiscard]] bool is() const {
    return !is_error() && std::holds_alternative<Body>(message().body);
  }
  template <class Body>
  [[nodiscard]] const Body& as() const {
    return std::get<Body>(message().body);
  }
  [[nodiscard]] const std::vector<record>& records() const { return batch; }
  [[nodiscard]] bool replaced_invalid_utf8() const { return has_replaced; }

  std::vector<record> batch;
  std::deque<std::string> arena;
  bool has_replaced = false;
  std::variant<protocol::message, protocol::decode_error> result;
};

/// A line and the result of decoding it. The memory is just as long as the decoder demands, so that
/// a sanitizer sees each byte that is read beyond it.
class decoded_line : public decoding {
 public:
  explicit decoded_line(std::string_view text) {
    protocol::decoder decoder;
    decode(text, decoder);
  }
  decoded_line(std::string_view text, protocol::decoder& decoder) { decode(text, decoder); }
  /// Decodes a line that arrives in pieces. `sizes`: how many bytes have arrived when the decoder
  /// reads ahead. The memory moves each time. A carriage return at the end is left out once the
  /// line is whole, as the line reader does.
  decoded_line(std::string_view text, protocol::decoder& decoder,
               const std::vector<std::size_t>& sizes) {
    std::size_t arrived = 0;
    for (const std::size_t size : sizes) {
      arrive(text, arrived, size);
      decoder.read_ahead(memory_.get(), size, batch, arena);
      arrived = size;
    }
    arrive(text, arrived, text.size());
    const std::size_t length = text.size() - (text.ends_with('\r') ? 1 : 0);
    result = decoder.decode(memory_.get(), length, batch, arena, has_replaced);
  }

 private:
  /// Moves the bytes that have arrived, which the decoder may have rewritten, to new memory, and
  /// adds the bytes of the text up to `size`.
  void arrive(std::string_view text, std::size_t arrived, std::size_t size) {
    auto memory = std::make_unique<char[]>(size + protocol::decoder::padding);
    if (arrived > 0) std::memcpy(memory.get(), memory_.get(), arrived);
    text.substr(arrived, size - arrived).copy(memory.get() + arrived, size - arrived);
    // A decoder that looks for the end of a text there finds it.
    std::fill_n(memory.get() + size, protocol::decoder::padding, '"');
    memory_ = std::move(memory);
  }
  void decode(std::string_view text, protocol::decoder& decoder) {
    arrive(text, 0, text.size());
    result = decoder.decode(memory_.get(), text.size(), batch, arena, has_replaced);
  }

  std::unique_ptr<char[]> memory_;
};

inline bool same(const record& a, const record& b) {
  return a.data() == b.data() && a.has_data() == b.has_data() &&
         a.partition_key() == b.partition_key() && a.sequence_number() == b.sequence_number() &&
         a.sub_sequence_number() == b.sub_sequence_number() &&
         a.approximate_arrival_timestamp() == b.approximate_arrival_timestamp();
}

/// Nothing when both are the same.
inline std::string difference(const std::vector<record>& a, const std::vector<record>& b) {
  if (a.size() != b.size()) return "the number of records";
  const auto place = std::mismatch(a.begin(), a.end(), b.begin(), same).first;
  return place == a.end() ? "" : "record " + std::to_string(place - a.begin());
}

/// Nothing when both mean the same.
inline std::string difference(const decoding& a, const decoding& b) {
  if (a.is_error() != b.is_error()) return "one is an error";
  if (a.is_error()) {
    if (a.error().field == b.error().field && a.error().problem == b.error().problem) return {};
    return a.error().field + " " + a.error().problem + " against " + b.error().field + " " +
           b.error().problem;
  }
  if (a.message().action != b.message().action) return "the action";
  if (a.message().body.index() != b.message().body.index()) return "the kind of message";
  if (a.has_replaced != b.has_replaced) return "invalid UTF-8";
  if (a.is<protocol::checkpoint_answer>()) {
    const auto& x = a.as<protocol::checkpoint_answer>();
    const auto& y = b.as<protocol::checkpoint_answer>();
    return x.error == y.error && x.position == y.position ? "" : "the answer";
  }
  if (!a.is<protocol::process_records>()) return {};
  const auto& x = a.as<protocol::process_records>();
  const auto& y = b.as<protocol::process_records>();
  if (x.millis_behind_latest != y.millis_behind_latest) return "the time behind";
  if (x.largest != y.largest) return "the largest position";
  return difference(a.batch, b.batch);
}

}  // namespace kclxx::test

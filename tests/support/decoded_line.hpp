// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "protocol/decoder.hpp"
#include "support/scripted_daemon.hpp"

namespace kclxx::test {

/// A line and the result of decoding it. The memory is just as long as the decoder demands, so that
/// a sanitizer sees each byte that is read beyond it.
class decoded_line {
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
      decoder.read_ahead(memory_.get(), size, records_, arena_);
      arrived = size;
    }
    arrive(text, arrived, text.size());
    const std::size_t length = text.size() - (text.ends_with('\r') ? 1 : 0);
    result_ = decoder.decode(memory_.get(), length, records_, arena_, replaced_);
  }

  [[nodiscard]] bool is_error() const {
    return std::holds_alternative<protocol::decode_error>(result_);
  }
  [[nodiscard]] const protocol::decode_error& error() const {
    return std::get<protocol::decode_error>(result_);
  }
  [[nodiscard]] const protocol::message& message() const {
    return std::get<protocol::message>(result_);
  }
  template <class Body>
  [[nodiscard]] bool is() const {
    return !is_error() && std::holds_alternative<Body>(message().body);
  }
  template <class Body>
  [[nodiscard]] const Body& as() const {
    return std::get<Body>(message().body);
  }
  [[nodiscard]] const std::vector<record>& records() const { return records_; }
  [[nodiscard]] bool replaced_invalid_utf8() const { return replaced_; }

 private:
  /// Moves the bytes that have arrived, which the decoder may have rewritten, to new memory, and
  /// adds the bytes of the text up to `size`.
  void arrive(std::string_view text, std::size_t arrived, std::size_t size) {
    auto memory = std::make_unique<char[]>(size + protocol::decoder::padding);
    if (arrived > 0) std::memcpy(memory.get(), memory_.get(), arrived);
    text.substr(arrived, size - arrived).copy(memory.get() + arrived, size - arrived);
    memory_ = std::move(memory);
  }
  void decode(std::string_view text, protocol::decoder& decoder) {
    arrive(text, 0, text.size());
    result_ = decoder.decode(memory_.get(), text.size(), records_, arena_, replaced_);
  }

  std::unique_ptr<char[]> memory_;
  std::vector<record> records_;
  std::deque<std::string> arena_;
  bool replaced_ = false;
  std::variant<protocol::message, protocol::decode_error> result_;
};

}  // namespace kclxx::test

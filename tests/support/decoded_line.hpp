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

/// A line and what became of it. The memory is just as long as the decoder demands, so that a
/// sanitizer sees a byte too many.
class decoded_line {
 public:
  explicit decoded_line(std::string_view text) {
    protocol::decoder decoder;
    decode(text, decoder);
  }
  decoded_line(std::string_view text, protocol::decoder& decoder) { decode(text, decoder); }
  /// The line came in pieces, of which these were the first sizes. Each is in memory of its own.
  /// A carriage return at its end is left out only once the line is whole, as the line reader does.
  decoded_line(std::string_view text, protocol::decoder& decoder,
               const std::vector<std::size_t>& sizes) {
    std::size_t had = 0;
    for (const std::size_t size : sizes) {
      arrive(text, had, size);
      decoder.read_ahead(memory_.get(), size, records_, arena_);
      had = size;
    }
    arrive(text, had, text.size());
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
  /// What was there may have been rewritten and moves; the rest comes from the text.
  void arrive(std::string_view text, std::size_t had, std::size_t size) {
    auto memory = std::make_unique<char[]>(size + protocol::decoder::padding);
    if (had > 0) std::memcpy(memory.get(), memory_.get(), had);
    text.substr(had, size - had).copy(memory.get() + had, size - had);
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

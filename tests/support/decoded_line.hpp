// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <deque>
#include <memory>
#include <string_view>
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
  void decode(std::string_view text, protocol::decoder& decoder) {
    memory_ = std::make_unique<char[]>(text.size() + protocol::decoder::padding);
    std::memcpy(memory_.get(), text.data(), text.size());
    result_ = decoder.decode(memory_.get(), text.size(), records_, arena_, replaced_);
  }

  std::unique_ptr<char[]> memory_;
  std::vector<record> records_;
  std::deque<std::string> arena_;
  bool replaced_ = false;
  std::variant<protocol::message, protocol::decode_error> result_;
};

}  // namespace kclxx::test

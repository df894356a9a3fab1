// SPDX-License-Identifier: Apache-2.0
// Transcripts in memory, read and written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tool/transcript/transcript.hpp"

namespace kclxx::test {

/// Hands out a text in pieces of at most `piece` bytes.
class memory_source : public transcript::byte_source {
 public:
  explicit memory_source(std::string text, std::size_t piece = std::string::npos)
      : text_(std::move(text)), piece_(piece) {}
  std::size_t read(char* target, std::size_t size) override {
    const std::size_t n = std::min({size, piece_, text_.size() - at_});
    std::memcpy(target, text_.data() + at_, n);
    at_ += n;
    return n;
  }

 private:
  std::string text_;
  std::size_t piece_;
  std::size_t at_ = 0;
};

/// Keeps what each write wrote.
class memory_sink : public transcript::byte_sink {
 public:
  void write(std::span<const std::string_view> pieces) override {
    std::string& chunk = writes.emplace_back();
    for (const std::string_view piece : pieces) chunk.append(piece);
  }
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const std::string& chunk : writes) text += chunk;
    return text;
  }

  std::vector<std::string> writes;
};

}  // namespace kclxx::test

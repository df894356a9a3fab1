// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <variant>

#include <kclxx/record_batch.hpp>

#include "driver/batch_memory.hpp"
#include "protocol/decoder.hpp"

namespace kclxx::driver {

/// The daemon's lines as messages, and what is wrong with those that are none, in words.
///
/// Thread safety: none.
class line_decoder {
 public:
  struct decoded {
    protocol::message message;
    record_batch batch{};  // of processRecords; owns the line's memory
    bool has_replaced_utf8 = false;
  };
  struct bad_line {
    std::string text;
  };
  /// A line without a message.
  struct blank {};
  /// After the last line. `error` is errno's, or 0.
  struct end {
    bool is_in_line;
    int error;
  };
  using outcome = std::variant<decoded, bad_line, blank, end>;

  /// Reads ahead in a line of which `line` has arrived; that line, wherever it then is, must be the
  /// next one to decode, with the same memory. False when there is too little to begin with.
  bool read_ahead(std::span<char> line, batch_memory& memory);
  /// Decodes `memory->line[0, length)`.
  outcome decode(std::shared_ptr<batch_memory> memory, std::size_t length);
  /// Of a line of which `line[0, length)` is there, and which is longer than `limit` bytes.
  bad_line too_long(const char* line, std::size_t length, std::size_t limit);

  void release_memory() { decoder_.release_memory(); }

 private:
  void keep_beginning(const char* line, std::size_t length);
  /// For a log, of a line of this length.
  [[nodiscard]] std::string excerpt(std::size_t length) const;

  protocol::decoder decoder_;
  std::string beginning_;  // of the line that is arriving or being decoded
};

}  // namespace kclxx::driver

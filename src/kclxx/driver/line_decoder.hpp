// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>

#include "io/lines.hpp"
#include "protocol/decoder.hpp"

namespace kclxx::driver {

/// The memory of a batch: its line, decoded in place, and the views into it.
struct batch_memory {
  io::line_buffer line;
  std::vector<record> records;
  std::deque<std::string> arena;  // texts that differ from the line's

  /// The size from which memory is given back to the system rather than kept.
  static constexpr std::size_t large = std::size_t{1} << 20;
  [[nodiscard]] bool is_large() const noexcept {
    return line.capacity() > large || records.capacity() * sizeof(record) > large ||
           (!arena.empty() && arena.front().capacity() > large);
  }
};

/// Lends batch memory and takes it back when the last handle on a batch is dropped, on whichever
/// thread that happens, so that in lockstep no batch allocates.
///
/// Thread safety: all functions from any thread. Lifetime: what it lent may outlive it.
class batch_memory_pool {
 public:
  batch_memory_pool();

  [[nodiscard]] std::shared_ptr<batch_memory> take();
  /// Lets the reader read into the largest buffer of the pool, so that one large buffer is enough.
  void lend_line(io::line_reader& reader);
  /// From now on large memory is kept when it comes back.
  void keep_large();
  /// Gives large memory back to the system: the pool's at once, and lent memory when it comes back.
  void release_large();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// Makes messages of the daemon's lines, and says in words what is wrong with a line that is none.
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
  /// The end of the input.
  struct end {
    bool is_in_line;  // it broke off in the middle of a line
    int error;        // errno's, or 0
  };
  using outcome = std::variant<decoded, bad_line, blank, end>;

  /// Decodes what it can of a line of which `line` has arrived. When the line is whole, it must be
  /// the next line to decode, at any address, with the same memory. False when too few bytes have
  /// arrived to begin.
  bool read_ahead(std::span<char> line, batch_memory& memory);
  /// Decodes `memory->line[0, length)`.
  outcome decode(std::shared_ptr<batch_memory> memory, std::size_t length);
  /// The refusal of a line that is longer than `limit` bytes; `line[0, length)` is its beginning.
  bad_line too_long(const char* line, std::size_t length, std::size_t limit);

 private:
  void keep_beginning(const char* line, std::size_t length);
  /// The beginning of a line of this length, for the log.
  [[nodiscard]] std::string excerpt(std::size_t length) const;

  protocol::decoder decoder_;
  std::string beginning_;  // of the line that is arriving or being decoded
};

}  // namespace kclxx::driver

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <kclxx/record.hpp>

#include "io/line_reader.hpp"

namespace kclxx::driver {

/// What a batch lives in: its line, decoded in place, and the views into it.
struct batch_memory {
  io::line_buffer line;
  std::vector<record> records;
  std::deque<std::string> arena;

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
  /// Lets a line be read into the largest buffer that is here, so that one is enough.
  void lend_line(io::line_reader& reader);
  /// Large memory is wanted again: keep it when it comes back.
  void keep_large();
  /// Gives large memory back to the system: what is here now, what is lent when it comes back.
  void release_large();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

}  // namespace kclxx::driver

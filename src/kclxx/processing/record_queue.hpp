// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>

#include "processing/completion_window.hpp"
#include "processing/key_chains.hpp"

namespace kclxx::processing {

/// What is to be processed next, and what is complete: the window, its limits, the order of each
/// key, and the failed records that are tried again later. A record is ready, taken, waiting for a
/// retry, waiting for its key, or complete.
///
/// Pure. Thread safety: none.
class record_queue {
 public:
  using time_point = completion_window::time_point;

  record_queue(order in, std::size_t most_records, std::uint64_t most_bytes)
      : order_(in), most_records_(most_records), most_bytes_(most_bytes), chains_(window_) {}
  record_queue(const record_queue&) = delete;
  record_queue& operator=(const record_queue&) = delete;

  /// Takes records of the batch in, from `offset` on, until the window is full. A record that is
  /// larger than the window is taken in when the window is empty. Returns how many.
  std::size_t admit(const record_batch& batch, std::size_t offset, time_point now);
  /// Whether a record of so many bytes fits, and at least an eighth of the window is free or
  /// nothing is ready: then it is worth while to admit more.
  [[nodiscard]] bool wants_more(std::uint64_t next) const noexcept;

  [[nodiscard]] std::size_t ready() const noexcept { return ready_; }
  /// The oldest record that is ready. It is taken until one of the next two is called for it.
  [[nodiscard]] std::optional<arrival> take();
  void complete(arrival which);
  void retry_at(arrival which, time_point due);

  /// Makes the failed records ready that are due.
  void make_due_ready(time_point now);
  /// When the next of them is due.
  [[nodiscard]] std::optional<time_point> next_due() const;

  /// Drops what is not complete. Nothing may be admitted afterwards.
  void clear();
  [[nodiscard]] const completion_window& window() const noexcept { return window_; }

 private:
  /// Beside so many records and bytes. The first one always does.
  [[nodiscard]] bool fits(std::uint64_t next, std::size_t records,
                          std::uint64_t bytes) const noexcept {
    return records == 0 || (records < most_records_ && bytes + next <= most_bytes_);
  }

  using retry = std::pair<time_point, arrival>;

  void set_ready(arrival which);
  void grow();

  order order_;
  std::size_t most_records_;
  std::uint64_t most_bytes_;
  completion_window window_;
  key_chains chains_;
  std::vector<std::uint64_t> ready_bits_ =
      std::vector<std::uint64_t>(1);  // a ring, as the window's
  std::size_t ready_ = 0;
  arrival first_ready_ = 0;  // none is before this one
  std::priority_queue<retry, std::vector<retry>, std::greater<>> retries_;
};

}  // namespace kclxx::processing

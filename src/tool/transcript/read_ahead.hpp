// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>

#include "tool/transcript/line_summary.hpp"
#include "tool/transcript/reader.hpp"

namespace kclxx::transcript {

/// Reads and summarizes a transcript on a thread of its own, so that who plays it never waits for
/// the source. Short lines are handed over many at a time.
///
/// Memory: as the reader's, for one long line.
/// Thread safety: next() is for one thread.
class read_ahead {
 public:
  /// Lifetime: `from` outlives this object. `on_ready` is called on the thread.
  read_ahead(reader& from, std::function<void()> on_ready);
  /// Blocking: until the source's read() has returned; end it before.
  ~read_ahead() = default;

  enum class state {
    has_entry,
    has_ended,
    is_reading,  ///< on_ready is called when that is over
  };
  /// `out` gets the next entry. Lifetime: until next() returns is_reading.
  /// Errors: the reader's.
  state next(const summarized_entry*& out);

 private:
  void work(const std::stop_token& stop);
  void read();

  reader& reader_;
  std::function<void()> on_ready_;
  line_summarizer summarizer_;

  std::mutex mutex_;
  std::condition_variable_any begin_;
  bool is_reading_ = false;               // then the rest belongs to the thread
  std::deque<summarized_entry> entries_;  // used again and again
  std::size_t count_ = 0;
  std::size_t taken_ = 0;
  bool has_ended_ = false;
  std::exception_ptr failure_;

  std::jthread thread_{[this](const std::stop_token& stop) { work(stop); }};
};

}  // namespace kclxx::transcript

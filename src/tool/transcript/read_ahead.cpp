// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/read_ahead.hpp"

#include <utility>

namespace kclxx::transcript {

namespace {

constexpr std::size_t most_entries = 256;  // at a time

}  // namespace

read_ahead::read_ahead(reader& from, std::function<void()> on_ready)
    : reader_(from), on_ready_(std::move(on_ready)) {}

read_ahead::state read_ahead::next(const summarized_entry*& out) {
  const std::lock_guard lock(mutex_);
  if (is_reading_) return state::is_reading;
  if (taken_ < count_) {
    out = &entries_[taken_++];
    return state::has_entry;
  }
  if (failure_) std::rethrow_exception(failure_);
  if (has_ended_) return state::has_ended;
  is_reading_ = true;
  begin_.notify_one();
  return state::is_reading;
}

void read_ahead::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (begin_.wait(lock, stop, [this] { return is_reading_; })) {
    lock.unlock();
    read();
    lock.lock();
    is_reading_ = false;
    on_ready_();
  }
}

void read_ahead::read() {
  count_ = taken_ = 0;
  try {
    do {
      if (count_ == entries_.size()) entries_.emplace_back();
      summarized_entry& to = entries_[count_];
      has_ended_ = !reader_.next(to.content, to.text);
      if (has_ended_) return;
      if (to.content.kind == entry_kind::daemon_line) {
        to.summary = summarizer_.summarize(to.content.line);
      }
      ++count_;
    } while (count_ < most_entries && reader_.has_buffered());
  } catch (...) {
    failure_ = std::current_exception();
  }
}

}  // namespace kclxx::transcript

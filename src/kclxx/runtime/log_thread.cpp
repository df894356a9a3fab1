// SPDX-License-Identifier: Apache-2.0
#include "runtime/log_thread.hpp"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "io/signals.hpp"
#include "runtime/logger.hpp"

namespace kclxx::runtime {

/// Shared with the thread, which may outlive the object when a line cannot be written.
struct log_thread::state {
  state(int to, std::function<void(const log_entry&)> by) : descriptor(to), write(std::move(by)) {}

  /// What to write next. Without anything the thread ends.
  std::optional<log_entry> take() {
    const std::lock_guard lock(mutex);
    if (!entries.empty()) {
      std::optional entry(std::move(entries.front()));
      entries.pop_front();
      return entry;
    }
    if (dropped > 0) {
      return log_entry{.level = log_level::warning,
                       .shard_id = {},
                       .text = std::to_string(std::exchange(dropped, 0)) +
                               " log lines were dropped, since they could not be written in time"};
    }
    is_writing = false;
    is_drained.notify_all();
    return std::nullopt;
  }

  const int descriptor;
  const std::function<void(const log_entry&)> write;
  std::mutex mutex;
  std::condition_variable is_drained;
  std::deque<log_entry> entries;
  std::size_t dropped = 0;
  bool is_writing = false;  // the thread runs
  bool is_abandoned = false;
};

log_thread::log_thread(int descriptor, std::function<void(const log_entry&)> write)
    : state_(std::make_shared<state>(descriptor, std::move(write))) {}

void log_thread::write(log_entry entry) noexcept {
  try {
    const std::lock_guard lock(state_->mutex);
    if (state_->is_abandoned) return;
    if (state_->entries.size() >= most_waiting) {
      ++state_->dropped;
      return;
    }
    if (!state_->is_writing) {
      const io::signal_block block;
      std::thread([shared = state_] { run(*shared); }).detach();
      state_->is_writing = true;
    }
    state_->entries.push_back(std::move(entry));
  } catch (const std::exception&) {  // no thread, no memory
    log_to_if_writable(state_->descriptor, entry);
  }
}

bool log_thread::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->is_drained.wait_until(lock, deadline, [this] { return !state_->is_writing; });
}

void log_thread::abandon() {
  const std::lock_guard lock(state_->mutex);
  state_->is_abandoned = true;
  state_->entries.clear();
  state_->dropped = 0;
}

void log_thread::run(state& shared) noexcept {
  while (const auto entry = shared.take()) shared.write(*entry);
}

}  // namespace kclxx::runtime

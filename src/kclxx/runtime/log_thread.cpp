// SPDX-License-Identifier: Apache-2.0
#include "runtime/log_thread.hpp"

#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "runtime/logger.hpp"

namespace kclxx::runtime {

/// Shared with the thread, which may outlive the object when a line cannot be written.
struct log_thread::state {
  void write_next(const log_entry& entry) {
    --waiting;
    write(entry);
    if (waiting > 0) return;
    if (const std::size_t count = dropped.exchange(0); count > 0) {
      write({.level = log_level::warning,
             .shard_id = {},
             .text = std::to_string(count) +
                     " log lines were dropped, since they could not be written in time"});
    }
  }

  const int descriptor;
  const std::function<void(const log_entry&)> write;
  std::atomic<std::size_t> waiting = 0;
  std::atomic<std::size_t> dropped = 0;
};

log_thread::log_thread(int descriptor, std::function<void(const log_entry&)> write)
    : state_(new state{descriptor, std::move(write)}) {}

void log_thread::write(log_entry entry) noexcept {
  std::shared_ptr<const log_entry> line;
  try {
    line = std::make_shared<const log_entry>(std::move(entry));
    if (state_->waiting++ >= most_waiting) {
      --state_->waiting;
      ++state_->dropped;
      return;
    }
    thread_.post([shared = state_, line] { shared->write_next(*line); });
  } catch (const std::exception&) {  // no thread, no memory
    if (line) --state_->waiting;
    log_to_if_writable(state_->descriptor, line ? *line : entry);
  }
}

void log_thread::abandon() {
  thread_.abandon();
  state_->dropped = 0;
}

}  // namespace kclxx::runtime

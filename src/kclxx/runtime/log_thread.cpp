// SPDX-License-Identifier: Apache-2.0
#include "runtime/log_thread.hpp"

#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include "io/line_writer.hpp"
#include "runtime/logger.hpp"

namespace kclxx::runtime {

/// Shared with the thread, which may outlive the object when a line cannot be written.
struct log_thread::state {
  template <class WriteLine>
  void write_next(const WriteLine& write_line) {
    --waiting;
    write_line();
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

std::shared_ptr<log_thread::state> log_thread::open_state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

/// Errors: std::exception, when there is no thread or no memory.
template <class Line>
void log_thread::post(const std::shared_ptr<state>& to, Line line) {
  if (to->waiting++ >= most_waiting) {
    --to->waiting;
    ++to->dropped;
    return;
  }
  try {
    thread_.post([to, line = std::move(line)] { to->write_next(line); });
  } catch (...) {
    --to->waiting;
    throw;
  }
}

void log_thread::write(log_entry entry) noexcept {
  const auto to = open_state();
  if (!to) return;
  std::shared_ptr<const log_entry> line;
  try {
    line = std::make_shared<const log_entry>(std::move(entry));
    post(to, [write = &to->write, line] { (*write)(*line); });
  } catch (const std::exception&) {
    log_now(to->descriptor, line ? *line : entry);
  }
}

void log_thread::write_text(std::string text) noexcept {
  const auto to = open_state();
  if (!to) return;
  try {
    post(to, [fd = to->descriptor, text = std::move(text)] {
      static_cast<void>(io::write_all(fd, text));  // nothing can be done for a closed descriptor
    });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
  }
}

void log_thread::abandon() {
  thread_.abandon();
  const auto dropped = [this] {  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    return std::exchange(state_, nullptr);
  }();
  if (dropped) dropped->dropped = 0;
}

}  // namespace kclxx::runtime

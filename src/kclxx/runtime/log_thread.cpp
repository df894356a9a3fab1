// SPDX-License-Identifier: Apache-2.0
#include "runtime/log_thread.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "base/printable.hpp"
#include "io/lines.hpp"
#include "observability/log_writer.hpp"

namespace kclxx::runtime {

using clock = std::chrono::steady_clock;

/// Shared with the thread, which may outlive the object when a line cannot be written. Any thread
/// takes room, and the thread of the log returns it, so the numbers are atomic.
struct log_thread::state {
  /// An empty queue takes any line.
  bool take_room(log_level level, std::size_t size) {
    const std::size_t share = level == log_level::error ? 2 : 1;
    const bool has_room = waiting++ < share * max_waiting;
    const bool has_memory = (waiting_bytes += size) - size < share * max_waiting_bytes;
    if (has_room && has_memory && !is_cut) return true;
    return_room(size);
    ++dropped;
    return false;
  }
  void return_room(std::size_t size) {
    --waiting;
    waiting_bytes -= size;
  }
  template <class WriteLine>
  void write_next(std::size_t size, const WriteLine& write_line) {
    return_room(size);
    if (is_cut) {
      ++dropped;
    } else {
      write_line();
    }
    // The lost lines are counted after the last line that is not lost. A line that another thread
    // posts at this moment is counted by the next call.
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
  std::atomic<std::size_t> waiting_bytes = 0;
  std::atomic<std::size_t> dropped = 0;
  std::atomic<bool> is_cut = false;  // lines that wait are dropped: finish() has given them up
};

log_thread::log_thread(int descriptor, std::function<void(const log_entry&)> write)
    : state_(new state{descriptor, std::move(write)}) {}

std::shared_ptr<log_thread::state> log_thread::open_state() {
  const std::lock_guard lock(mutex_);
  return state_;
}

template <class Line>
void log_thread::post(const std::shared_ptr<state>& target, log_level level, std::size_t size,
                      Line line) {
  if (!target->take_room(level, size)) return;
  thread_.post([target, size, line = std::move(line)] { target->write_next(size, line); });
}

void log_thread::write(log_entry entry) noexcept {
  const auto to = open_state();
  if (!to) return;
  const auto line = std::make_shared<const log_entry>(std::move(entry));
  post(to, line->level, line->text.size(), [write = &to->write, line] { (*write)(*line); });
}

void log_thread::write_text(std::string text) noexcept {
  const auto to = open_state();
  if (!to) return;
  const std::size_t size = text.size();
  post(to, log_level::info, size, [fd = to->descriptor, text = std::move(text)] {
    static_cast<void>(io::write_all(fd, text));  // nothing can be done for a closed descriptor
  });
}

bool log_thread::finish(std::chrono::milliseconds patience, clock::time_point latest,
                        std::chrono::milliseconds for_count) {
  const auto to = open_state();
  if (!to) return drain(latest);
  // As long as lines are taken, the wait goes on.
  for (std::size_t before = to->waiting;; before = to->waiting) {
    if (drain(std::min(clock::now() + patience, latest))) return true;
    if (clock::now() >= latest || to->waiting >= before) break;
  }
  to->is_cut = true;
  return drain(clock::now() + for_count);
}

void log_thread::abandon() {
  thread_.abandon();
  // The write function may be the program's, so it is destroyed without the lock.
  const auto dropped = [this] {
    const std::lock_guard lock(mutex_);
    return std::exchange(state_, nullptr);
  }();
  if (dropped) dropped->dropped = 0;
}

void log(const run_options& options, log_level level, const std::string& text) {
  const log_entry entry{level, {}, detail::printable(text)};
  try {
    if (options.log) return options.log(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the line goes to stderr then
  }
  const std::string line = observability::text_line(entry);
  std::string_view unwritten = line;
  // Unbuffered, so that std::_Exit loses nothing. A closed descriptor must not end the shard.
  static_cast<void>(io::write_now(STDERR_FILENO, unwritten));
}

void log_failure(const run_options& options, const std::exception& error) {
  log(options, log_level::error, std::string("cannot serve the daemon: ") + detail::text_of(error));
}

}  // namespace kclxx::runtime

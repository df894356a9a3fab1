// SPDX-License-Identifier: Apache-2.0
#include "runtime/user_tasks.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <system_error>
#include <unistd.h>

#include "io/copy_guard.hpp"
#include "io/descriptor.hpp"
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

namespace {

/// A line may come late, when the descriptor is closed and its number is another file's. So lines
/// have a copy of the descriptor. There is none of stderr: nobody closes that, and the program may
/// direct it elsewhere.
std::shared_ptr<log_thread> make_lines(const log_options& options, int descriptor) {
  std::shared_ptr<const io::descriptor> copy;
  if (descriptor != STDERR_FILENO) {
    copy = std::make_shared<const io::descriptor>(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
    if (!copy->is_open()) throw std::system_error(errno, std::generic_category(), "a descriptor");
    descriptor = copy->get();
  }
  return std::make_shared<log_thread>(
      descriptor,
      [copy, output = std::make_shared<const observability::log_output>(options, descriptor)](
          const log_entry& entry) { output->write(entry); });
}

}  // namespace

user_tasks::user_tasks(const run_options& options, int log_descriptor)
    : level_(options.logging.level), lines_(make_lines(options.logging, log_descriptor)) {
  if (!options.log) return;
  log_ = std::make_unique<log_thread>(
      log_descriptor, [lines = lines_, write = options.log](const log_entry& entry) {
        try {
          write(entry);
        } catch (...) {
          lines->write(entry);
        }
      });
}

void user_tasks::request_stop() {
  stop_callbacks_.post([source = stop_]() mutable { source.request_stop(); });
  stop_callbacks_.end();
  is_stop_posted_ = true;
}

void user_tasks::await_stop() const {
  // std::stop_source sets its state and runs the callbacks in one call, and the first callback may
  // not return. So nobody can tell this thread when the state is set.
  while (is_stop_posted_ && !stop_.stop_requested()) std::this_thread::yield();
}

void user_tasks::log(const log_entry& entry) {
  if (entry.level >= level_) (log_ ? *log_ : *lines_).write(entry);
}

void user_tasks::finish() {
  drain(time_point::max());
  stop_callbacks_.drain(time_point::max());
}

void user_tasks::end() {
  handlers_.end();
  if (!log_) return;
  log_->abandon();
  log_->drain(time_point::max());
}

void user_tasks::abandon() {
  handlers_.abandon();
  if (log_) log_->abandon();
  lines_->abandon();
}

real_thread_pool::real_thread_pool(std::size_t threads) {
  try {
    while (threads_.size() < threads) threads_.emplace_back([this] { run(); });
  } catch (...) {
    end();
    throw;
  }
}

real_thread_pool::~real_thread_pool() { end(); }

void real_thread_pool::end() {
  std::deque<std::function<void()>> dropped;  // user code: destroyed without the lock
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    dropped.swap(functions_);
    has_work_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void real_thread_pool::post(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  if (is_ended_) return;
  functions_.push_back(std::move(function));
  has_work_.notify_one();
}

void real_thread_pool::run() {
  const io::copy_guard copies;
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return !functions_.empty() || is_ended_; });
    if (functions_.empty()) return;
    {
      const std::function<void()> function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      function();
      copies.leave_if_copied();
    }
    lock.lock();
  }
}

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
#include "runtime/user_tasks.hpp"

#include <cerrno>
#include <condition_variable>
#include <fcntl.h>
#include <mutex>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/copy_guard.hpp"
#include "io/descriptor.hpp"
#include "observability/log_writer.hpp"

namespace kclxx::runtime {

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

bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never_notified;
  std::unique_lock lock(mutex);
  never_notified.wait_until(lock, stop, deadline, [] { return false; });
  return !stop.stop_requested();
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

// SPDX-License-Identifier: Apache-2.0
#include "runtime/threads.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

namespace kclxx::runtime {

bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, deadline, [] { return false; });
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
  std::unique_lock lock(mutex_);
  for (;;) {
    has_work_.wait(lock, [this] { return !functions_.empty() || is_ended_; });
    if (functions_.empty()) return;
    {
      const std::function<void()> function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      function();
    }
    lock.lock();
  }
}

}  // namespace kclxx::runtime

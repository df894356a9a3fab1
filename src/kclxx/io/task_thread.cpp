// SPDX-License-Identifier: Apache-2.0
#include "io/task_thread.hpp"

#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <utility>

#include "io/copy_guard.hpp"
#include "io/signals.hpp"

namespace kclxx::io {

/// Shared with the thread, which may outlive the object when a function does not return.
struct task_thread::state {
  std::mutex mutex;
  std::condition_variable is_drained;
  std::list<std::function<void()>> tasks;
  bool is_running = false;  // the thread
  bool is_abandoned = false;
};

task_thread::task_thread() : state_(std::make_shared<state>()) {}

void task_thread::post(std::function<void()> task) {
  const std::lock_guard lock(state_->mutex);
  if (state_->is_abandoned) return;
  if (!state_->is_running) {
    const signal_block block;
    std::thread([shared = state_] { run(*shared); }).detach();
    state_->is_running = true;
  }
  state_->tasks.push_back(std::move(task));
}

bool task_thread::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->is_drained.wait_until(lock, deadline, [this] { return !state_->is_running; });
}

void task_thread::abandon() noexcept {
  std::list<std::function<void()>> dropped;  // user code: destroyed without the lock
  const std::lock_guard lock(state_->mutex);
  state_->is_abandoned = true;
  dropped.swap(state_->tasks);
}

void task_thread::run(state& shared) {
  const copy_guard copies;
  std::unique_lock lock(shared.mutex);
  while (!shared.tasks.empty()) {
    {
      const std::function<void()> task = std::move(shared.tasks.front());
      shared.tasks.pop_front();
      lock.unlock();
      task();
      copies.leave_if_copied();
    }
    lock.lock();
  }
  shared.is_running = false;
  shared.is_drained.notify_all();
}

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#include "runtime/task_thread.hpp"

#include <thread>
#include <utility>

#include "io/signals.hpp"

namespace kclxx::runtime {

/// Shared with the thread, which may outlive the object when a function does not return.
struct task_thread::state {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  bool is_started = false;
  bool is_running = false;  // a task
  bool is_ended = false;
  bool is_abandoned = false;
};

task_thread::task_thread() : state_(std::make_shared<state>()) {}

task_thread::~task_thread() {
  const std::lock_guard lock(state_->mutex);
  state_->is_ended = true;
  state_->changed.notify_all();
}

void task_thread::post(std::function<void()>&& task) {
  const std::lock_guard lock(state_->mutex);
  if (state_->is_abandoned) return;
  if (!state_->is_started) {
    const io::signal_block block;
    std::thread([shared = state_] { run(shared); }).detach();
    state_->is_started = true;
  }
  state_->tasks.push_back(std::move(task));
  state_->changed.notify_all();
}

bool task_thread::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_until(
      lock, deadline, [this] { return state_->tasks.empty() && !state_->is_running; });
}

void task_thread::abandon() {
  std::deque<std::function<void()>> dropped;  // user code: destroyed without the lock
  const std::lock_guard lock(state_->mutex);
  state_->is_abandoned = state_->is_ended = true;
  state_->changed.notify_all();
  dropped.swap(state_->tasks);
}

void task_thread::run(const std::shared_ptr<state>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&] { return !shared->tasks.empty() || shared->is_ended; });
    if (shared->tasks.empty()) return;
    {
      const std::function<void()> task = std::move(shared->tasks.front());
      shared->tasks.pop_front();
      shared->is_running = true;
      lock.unlock();
      task();
    }
    lock.lock();
    shared->is_running = false;
    shared->changed.notify_all();
  }
}

}  // namespace kclxx::runtime

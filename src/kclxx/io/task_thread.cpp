// SPDX-License-Identifier: Apache-2.0
#include "io/task_thread.hpp"

#include <condition_variable>
#include <list>
#include <thread>
#include <utility>

#include "io/copy_guard.hpp"
#include "io/signals.hpp"

namespace kclxx::io {

/// Shared with the thread, which outlives the object when a function does not return.
struct task_thread::state {
  std::mutex mutex;
  // The mutex guards the members below.
  std::condition_variable has_work;
  std::condition_variable is_drained;
  std::list<std::function<void()>> tasks;
  bool has_thread = false;
  bool is_busy = false;
  bool is_ending = false;
  bool is_abandoned = false;
};

task_thread::task_thread() : state_(std::make_shared<state>()) {}

void task_thread::end() noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->is_ending = true;
  state_->has_work.notify_one();
}

void task_thread::start() {
  const std::lock_guard lock(state_->mutex);
  if (state_->has_thread) return;
  const signal_block block;
  std::thread([shared = state_] { run(*shared); }).detach();
  state_->has_thread = true;
}

void task_thread::post(std::function<void()> task) noexcept {
  start();
  const std::lock_guard lock(state_->mutex);
  if (state_->is_abandoned) return;
  state_->tasks.push_back(std::move(task));
  if (!state_->is_busy) state_->has_work.notify_one();
}

bool task_thread::drain(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(state_->mutex);
  return state_->is_drained.wait_until(
      lock, deadline, [this] { return !state_->is_busy && state_->tasks.empty(); });
}

void task_thread::abandon() noexcept {
  std::list<std::function<void()>> dropped;  // user code: destroyed without the lock
  const std::lock_guard lock(state_->mutex);
  state_->is_abandoned = state_->is_ending = true;
  dropped.swap(state_->tasks);
  state_->has_work.notify_one();
  if (!state_->is_busy) state_->is_drained.notify_all();
}

void task_thread::run(state& shared) {
  const copy_guard copies;
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.has_work.wait(lock, [&] { return !shared.tasks.empty() || shared.is_ending; });
    if (shared.tasks.empty()) return;
    shared.is_busy = true;
    {
      const std::function<void()> task = std::move(shared.tasks.front());
      shared.tasks.pop_front();
      // User code runs and is destroyed without the lock: it may post, and drain() may time out.
      lock.unlock();
      task();
      copies.leave_if_copied();
    }
    lock.lock();
    shared.is_busy = false;
    if (shared.tasks.empty()) shared.is_drained.notify_all();
  }
}

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#include "observability/observer_queue.hpp"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace kclxx::observability {

/// Shared with the thread, which outlives the queue when an observer does not return.
class observer_queue::state {
 public:
  state(observers targets, std::function<void(std::exception_ptr)> threw)
      : observers_(std::move(targets)), threw_(std::move(threw)) {}

  void push(const observer::event_source& source, observer::shard_event&& event) {
    const std::lock_guard lock(mutex_);
    if (events_.size() >= capacity) {
      ++dropped_;
      return;
    }
    events_.push_back({source, std::move(event)});
    if (events_.size() == 1 || events_.size() == enough) changed_.notify_one();
  }

  void end() {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    changed_.notify_one();
  }

  void abandon() {
    std::vector<entry> dropped;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    is_abandoned_ = true;
    dropped.swap(events_);
    changed_.notify_one();
  }

  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !events_.empty() || is_ending_; });
      if (events_.empty()) return;
      changed_.wait_for(lock, longest_delay,
                        [this] { return events_.size() >= enough || is_ending_; });
      std::vector<entry> group;
      group.swap(events_);
      const std::uint64_t dropped = std::exchange(dropped_, 0);
      lock.unlock();
      deliver(group, dropped);
      lock.lock();
    }
  }

 private:
  struct entry {
    observer::event_source source;
    observer::shard_event event;
  };
  static constexpr std::size_t enough = 1024;

  void deliver(const std::vector<entry>& group, std::uint64_t dropped) {
    for (const entry& queued : group) {
      for (const auto& each : observers_) {
        guarded([&] { each->on_event(queued.source, queued.event); });
      }
      {
        const std::lock_guard lock(mutex_);
        if (is_abandoned_) return;
      }
    }
    if (dropped == 0 || group.empty()) return;  // empty: it was abandoned
    for (const auto& each : observers_) {
      guarded([&] { each->on_events_dropped(group.back().source, dropped); });
    }
  }

  template <class Function>
  void guarded(Function call) {
    try {
      call();
    } catch (...) {
      if (!std::exchange(has_thrown_, true)) report(std::current_exception());
    }
  }

  void report(const std::exception_ptr& thrown) {
    try {
      threw_(thrown);
    } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for a line of the log
    }
  }

  const observers observers_;
  const std::function<void(std::exception_ptr)> threw_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<entry> events_;
  std::uint64_t dropped_ = 0;
  bool is_ending_ = false;
  bool is_abandoned_ = false;
  bool has_thrown_ = false;  // belongs to the thread
};

observer_queue::observer_queue(observers targets, std::function<void(std::exception_ptr)> threw)
    : state_(std::make_shared<state>(std::move(targets), std::move(threw))) {
  thread_.post([shared = state_] { shared->run(); });
}

observer_queue::~observer_queue() { state_->abandon(); }

void observer_queue::push(const observer::event_source& source, observer::shard_event&& event) {
  state_->push(source, std::move(event));
}

bool observer_queue::finish(std::chrono::steady_clock::time_point deadline) {
  state_->end();
  return thread_.drain(deadline);
}

}  // namespace kclxx::observability

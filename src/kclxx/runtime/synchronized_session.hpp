// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include "driver/session_driver.hpp"
#include "driver/shard_timers.hpp"
#include "io/line_output.hpp"
#include "observability/observation.hpp"
#include "runtime/user_tasks.hpp"

namespace kclxx::runtime {

/// A shard's session_driver, and what its threads need to feed it one event at a time.
struct synchronized_session {
  /// Holds the lock for one event. The destructors of timers' functions run when it is released,
  /// since they may call back.
  class event;
  /// A call of checkpoint() that waits for its outcome.
  struct waiting_call {
    std::condition_variable answered;
    std::optional<std::error_code> result;
  };

  synchronized_session(processor_factory make_processor, const run_options& options,
                       int output_descriptor, int log_descriptor, driver::host& around)
      : tasks(options, log_descriptor),
        output(output_descriptor),
        driver(std::move(make_processor), options, std::random_device{}(), around) {}

  std::mutex mutex;
  user_tasks tasks;
  // Guarded by the mutex, but for driver.run_callback.
  io::line_output output;  // nothing is read while it keeps lines
  driver::session_driver driver;
  driver::shard_timers timers;
  std::unordered_map<session::waiter_id, waiting_call*> waiting;
  std::string shard_id;
  /// Set before the threads start, and never changed; null without observers.
  std::unique_ptr<observability::observation> observation;
};

class synchronized_session::event {
 public:
  explicit event(synchronized_session& owner) : owner_(owner), lock_(owner.mutex) {}
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  /// Also when the event has thrown: what it led to until then is not lost.
  ~event() {
    if (lock_.owns_lock()) run_user_code();
  }

  std::unique_lock<std::mutex>& lock() { return lock_; }
  /// Releases the lock.
  void run_user_code() {
    if (owner_.tasks.has_without_thread()) owner_.tasks.retry();
    if (!owner_.timers.has_dropped()) return lock_.unlock();
    const auto dropped = owner_.timers.take_dropped();
    lock_.unlock();
  }

 private:
  synchronized_session& owner_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace kclxx::runtime

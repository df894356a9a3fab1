// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <kclxx/observer.hpp>

#include "io/task_thread.hpp"

namespace kclxx::observability {

/// Calls observers on a thread of its own, so that none can hold up the dialogue: events wait in a
/// queue, and those beyond its capacity are dropped and counted. Waking a thread for each event
/// would cost more than the event, so they are delivered in groups.
///
/// Thread safety: all functions from any thread.
class observer_queue {
 public:
  static constexpr std::size_t capacity = 65'536;
  static constexpr std::chrono::milliseconds longest_delay{100};

  using observers = std::vector<std::shared_ptr<observer>>;
  /// `threw` is called with what an observer threw first, on the queue's thread.
  /// Errors: std::system_error when the thread cannot be started.
  observer_queue(observers targets, std::function<void(std::exception_ptr)> threw);
  /// Does not wait; what has not been delivered is dropped.
  ~observer_queue();
  observer_queue(const observer_queue&) = delete;
  observer_queue& operator=(const observer_queue&) = delete;

  void push(const observer::event_source& source, observer::shard_event&& event);
  /// Delivers what is there, and ends. False when an observer did not return in time.
  bool finish(std::chrono::steady_clock::time_point deadline);

 private:
  class state;
  std::shared_ptr<state> state_;
  io::task_thread thread_;
};

}  // namespace kclxx::observability

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service.hpp>

#include "testing/idle_time.hpp"
#include "testing/usage.hpp"

namespace kclxx::testing {

/// A steady clock that moves only when it is set.
///
/// It begins some time after zero, as a machine's does, so that a processor can take zero for
/// "long ago". Thread safety: now() from any thread.
class virtual_clock {
 public:
  using clock = std::chrono::steady_clock;
  static constexpr std::chrono::hours start{24};
  static constexpr std::chrono::milliseconds first_date{1'600'000'000'000};

  [[nodiscard]] clock::time_point now() const noexcept {
    return clock::time_point(clock::duration(ticks_.load()));
  }
  [[nodiscard]] std::chrono::milliseconds elapsed() const noexcept {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now().time_since_epoch() - start);
  }
  /// The date, which moves with it.
  [[nodiscard]] std::chrono::system_clock::time_point date() const noexcept {
    return std::chrono::system_clock::time_point(first_date + elapsed());
  }
  /// Never backwards.
  void move_to(clock::time_point time) noexcept {
    if (time > now()) ticks_ = time.time_since_epoch().count();
  }

 private:
  std::atomic<clock::rep> ticks_{clock::duration(start).count()};
};

/// What has threads of its own in production: pools, executors, checkpoint handlers, observers and
/// the log. In the kit they are real threads, too, so that a function can wait in its middle. But
/// one of them runs at a time, while the thread that has called run() waits. So all that happens
/// has an order, the same in each run, and needs no lock.
class virtual_threads {
 public:
  using time_point = virtual_clock::clock::time_point;

  /// Threads that run the same functions.
  class group {
   public:
    [[nodiscard]] bool is_idle() const noexcept { return running_ == 0; }

   private:
    friend class virtual_threads;
    std::size_t threads_ = 1;
    detail::virtual_executor* executor_ =
        nullptr;  // asked for functions; null: functions_ has them
    std::deque<std::pair<std::uint64_t, std::function<void()>>> functions_;  // by their number
    std::size_t running_ = 0;                                                // or waiting
    bool has_ended_ = false;
  };

  virtual_threads(std::shared_ptr<usage> usage, std::shared_ptr<const virtual_clock> clock,
                  std::shared_ptr<idle_time> idle)
      : usage_(std::move(usage)), clock_(std::move(clock)), idle_(std::move(idle)) {}
  virtual_threads(const virtual_threads&) = delete;
  virtual_threads& operator=(const virtual_threads&) = delete;
  ~virtual_threads() { end(); }

  [[nodiscard]] std::shared_ptr<group> add_group(std::size_t threads,
                                                 detail::virtual_executor* executor = nullptr);
  /// Without effect after the end of the group.
  void post(group& target, std::function<void()> function);
  /// Drops the functions that have not begun; for an executor, none begins any more.
  void close(const std::shared_ptr<group>& closed);
  /// What waits in the group is ended by process_ended.
  void end(group& ended);

  /// What may run: only what is ready whatever the time is, or also executors and waits that end
  /// now. At one time a timer comes before the waits, as in production, where a wait begins after
  /// the timer that watches it.
  enum class share { untimed, all };
  /// Runs functions until each has ended or waits. Ends early when they start each other without
  /// end. False when there was nothing to run.
  /// Errors: std::runtime_error when no thread can be started for one more function that waits.
  bool run(share what);
  /// When time alone makes something ready.
  [[nodiscard]] std::optional<time_point> next_timer() const;
  [[nodiscard]] bool runs_executors() const noexcept;
  /// Whether one of the threads runs, perhaps another daemon's functions.
  [[nodiscard]] bool is_running() const noexcept { return current_ != nullptr; }
  /// Whether one of the threads is the caller's.
  [[nodiscard]] bool is_caller() const noexcept;
  /// Whether functions have begun and wait.
  [[nodiscard]] bool are_waiting() const noexcept { return !waiting_.empty(); }
  /// On one of the threads: others run.
  /// Errors: process_ended after the end of the group.
  void wait(time_point deadline, const std::function<bool()>& is_over);

  /// Drops what has not begun, and ends what waits by process_ended. Joins all threads but the
  /// caller's.
  void end();

  /// On a thread that runs beside all others, as in production: on theirs a stop callback could
  /// wait for what a function that waits holds. When this returns it has run, unless it waits so,
  /// or takes longer than 100 ms of real time.
  void request_stop(std::stop_source source);
  /// Once the stop callback has returned; without effect while functions wait.
  void join_stop();
  /// What a stop callback asks for is too late; an exception there would end the test's process.
  [[nodiscard]] static bool is_stop_thread() noexcept;

 private:
  struct thread {
    std::thread real;
    std::condition_variable turn;  // it may continue
    std::condition_variable back;  // it waits, or has ended
    bool has_turn = false;
    bool has_ended = false;
    group* runs = nullptr;
    time_point deadline{};  // while it waits
    const std::function<bool()>* is_over = nullptr;
  };

  [[nodiscard]] std::shared_ptr<group> next_group() const;
  [[nodiscard]] bool has_functions() const;
  [[nodiscard]] thread* take_ended_wait(share what);
  [[nodiscard]] thread& take_idle();
  void work(thread& self);
  bool run_one(thread& self, const std::shared_ptr<group>& source);
  void resume(thread& next);
  void hand_back(thread& self);

  std::shared_ptr<usage> usage_;
  std::shared_ptr<const virtual_clock> clock_;
  std::shared_ptr<idle_time> idle_;
  std::mutex mutex_;  // of the turns
  std::vector<std::unique_ptr<thread>> threads_;
  std::vector<thread*> idle_threads_;
  std::vector<thread*> waiting_;  // in the order of their beginning
  std::vector<std::shared_ptr<group>> groups_;
  std::uint64_t last_function_ = 0;
  thread* current_ = nullptr;
  share runs_ = share::all;
  bool has_run_ = false;  // something, since the last resume()
  bool has_ended_ = false;
  std::thread stop_thread_;
};

}  // namespace kclxx::testing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service.hpp>

namespace kclxx::testing {

/// Reports what a test does wrong: where it is done, and once more at the end of the kit's
/// function, since a callback's exceptions are caught and a worker thread's may be.
class usage {
 public:
  /// `function` is a literal. Thread safety: any thread.
  void require_owner(const char* function) {
    if (!is_owner(function)) throw std::logic_error(function + elsewhere());
  }
  /// For calls whose caller may be unable to pass an exception on: only the end of the kit's
  /// function reports it. The call must then change nothing. Thread safety: any thread.
  [[nodiscard]] bool is_owner(const char* function) noexcept {
    if (acting() == owner_) return true;
    called_elsewhere_ = function;
    return false;
  }

  /// On a thread of the kit: what it does is done for the test's thread.
  void adopt_thread() noexcept { acting() = owner_; }

  void remember(std::string reason) { refused_ = std::move(reason); }
  /// Inside a callback.
  [[noreturn]] void refuse_in_callback(const std::string& reason) {
    remember(reason);
    throw std::logic_error(reason);
  }

  /// Another thread's call comes first, since what else went wrong may follow from it.
  void raise_remembered() {
    const char* const function = called_elsewhere_.exchange(nullptr);
    const auto why = std::exchange(refused_, std::nullopt);
    if (function != nullptr) throw std::logic_error(function + elsewhere());
    if (why) throw std::logic_error(*why);
  }

 private:
  static std::string elsewhere() {
    return " was called on another thread than the one that made the kclxx::testing::worker: the "
           "test kit runs one thing at a time, on that thread and on its own (docs/testing.md "
           "describes how to test a processor with worker threads)";
  }
  /// The thread for which the present one acts.
  static std::thread::id& acting() noexcept {
    static thread_local std::thread::id thread = std::this_thread::get_id();
    return thread;
  }

  std::thread::id owner_ = acting();
  std::optional<std::string> refused_;
  std::atomic<const char*> called_elsewhere_ = nullptr;
};

/// Notices a wait that never ends, as when a record is retried without end: time passes by itself,
/// and nothing comes of it. One wait may take as long as it likes; it is the next that is too much.
/// What never ends can also take no time, as tasks that start each other.
class idle_time {
 public:
  using duration = std::chrono::steady_clock::duration;

  explicit idle_time(duration limit) : limit_(limit) {}

  /// A batch is delivered, a further position is requested or persisted, or the test continues.
  void end() noexcept {
    passed_ = {};
    steps_ = all_steps_ = tasks_ = 0;
  }
  void pass(duration time) noexcept {
    passed_ += time;
    if (time > duration(0)) steps_ = tasks_ = 0;
  }
  /// User code runs or waits, which may take no time at all.
  void step() noexcept {
    ++steps_;
    ++all_steps_;
  }
  /// What has a thread of its own in production runs.
  void run_task() noexcept { ++tasks_; }

  [[nodiscard]] bool is_over() const noexcept {
    return passed_ > limit_ || steps_ > most_steps || all_steps_ > most_in_all || is_spinning();
  }
  /// Tasks alone have gone too far.
  [[nodiscard]] bool is_spinning() const noexcept { return tasks_ > most_in_all; }
  /// Of what is over: what has happened without progress.
  [[nodiscard]] std::string text() const {
    using std::chrono::duration_cast, std::chrono::hours;
    if (passed_ > limit_) {
      return std::to_string(duration_cast<hours>(passed_).count()) +
             " hours of virtual time have passed without progress (see "
             "worker_options::idle_limit)";
    }
    return "user code has run " + std::to_string(std::max(all_steps_, tasks_)) +
           " times without progress" +
           (all_steps_ > most_in_all ? "" : " and without virtual time passing");
  }

 private:
  static constexpr int most_steps = 25'000;      // without time
  static constexpr int most_in_all = 1'000'000;  // many for each record of the largest batch

  duration limit_;
  duration passed_{};
  int steps_ = 0;  // since time has passed
  int all_steps_ = 0;
  int tasks_ = 0;
};

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
    detail::virtual_scheduler::executor* executor_ =
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

  [[nodiscard]] std::shared_ptr<group> add_group(
      std::size_t threads, detail::virtual_scheduler::executor* executor = nullptr);
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

  /// Runs the stop callbacks to their end, on a thread of their own: the caller's is in the middle
  /// of an event.
  static void request_stop(std::stop_source source);
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
};

}  // namespace kclxx::testing

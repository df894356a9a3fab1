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

/// Reports a wrong use of the kit twice: where it happens, and at the end of the kit's function,
/// since the exceptions of a callback are caught, and those of a worker thread may be.
class usage {
 public:
  /// `function` is a literal. Thread safety: any thread.
  void require_owner(const char* function) {
    if (!is_owner(function)) throw std::logic_error(function + elsewhere());
  }
  /// False on a wrong thread, where the call must change nothing. For callers that may be unable to
  /// pass an exception on: only the end of the kit's function reports it.
  /// Thread safety: any thread.
  [[nodiscard]] bool is_owner(const char* function) noexcept {
    if (acting() == owner_) return true;
    called_elsewhere_ = function;
    return false;
  }

  /// To be called on a thread of the kit: from now on it acts for the test's thread.
  void adopt_thread() noexcept { acting() = owner_; }

  void remember(std::string reason) { refused_ = std::move(reason); }

  /// Throws what was remembered. A call on a wrong thread comes first: it may have caused the rest.
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

  const std::thread::id owner_ = acting();
  std::optional<std::string> refused_;  // belongs to the threads that act for the owner
  std::atomic<const char*> called_elsewhere_ = nullptr;  // set by any thread
};

/// Notices waits that never end, as when a record is retried without end: virtual time passes, and
/// there is no progress. A single wait may take any time; the next wait is too much. Tasks that
/// start each other never end either, and take no time.
class idle_time {
 public:
  using duration = std::chrono::steady_clock::duration;

  explicit idle_time(duration limit) : limit_(limit) {}

  /// There is progress: a batch is delivered, a further position is requested or persisted, or the
  /// test continues.
  void end() noexcept {
    passed_ = {};
    steps_ = steps_without_progress_ = tasks_ = 0;
  }
  void pass(duration time) noexcept {
    passed_ += time;
    if (time > duration(0)) steps_ = tasks_ = 0;
  }
  /// User code runs or waits, which may take no time at all.
  void step() noexcept {
    ++steps_;
    ++steps_without_progress_;
  }
  /// A function runs that has a thread of its own in production.
  void run_task() noexcept { ++tasks_; }

  [[nodiscard]] bool is_over() const noexcept {
    return passed_ > limit_ || steps_ > max_steps_without_time ||
           steps_without_progress_ > max_without_progress || is_spinning();
  }
  /// Whether tasks alone have gone too far.
  [[nodiscard]] bool is_spinning() const noexcept { return tasks_ > max_without_progress; }
  /// When it is over: what has happened without progress.
  [[nodiscard]] std::string text() const {
    using std::chrono::duration_cast, std::chrono::hours;
    if (passed_ > limit_) {
      return std::to_string(duration_cast<hours>(passed_).count()) +
             " hours of virtual time have passed without progress (see "
             "worker_options::idle_limit)";
    }
    return "user code has run " + std::to_string(std::max(steps_without_progress_, tasks_)) +
           " times without progress" +
           (steps_without_progress_ > max_without_progress ? ""
                                                           : " and without virtual time passing");
  }

 private:
  static constexpr int max_steps_without_time = 25'000;
  static constexpr int max_without_progress = 1'000'000;  // many for each record of a large batch

  duration limit_;
  duration passed_{};
  int steps_ = 0;  // since virtual time has passed
  int steps_without_progress_ = 0;
  int tasks_ = 0;  // since virtual time has passed
};

/// A steady clock that moves only when it is set.
///
/// It begins some time after zero, as a machine's clock does, so that a processor can take zero for
/// "long ago". Thread safety: now() may be called from any thread.
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
  /// The date, which moves with the clock.
  [[nodiscard]] std::chrono::system_clock::time_point date() const noexcept {
    return std::chrono::system_clock::time_point(first_date + elapsed());
  }
  /// Moves the clock forward to `time`; an earlier time has no effect.
  void move_to(clock::time_point time) noexcept {
    if (time > now()) ticks_ = time.time_since_epoch().count();
  }

 private:
  std::atomic<clock::rep> ticks_{clock::duration(start).count()};
};

/// The earlier of two times; an unset one never comes.
[[nodiscard]] inline std::optional<virtual_clock::clock::time_point> earlier(
    const std::optional<virtual_clock::clock::time_point>& a,
    const std::optional<virtual_clock::clock::time_point>& b) {
  return a && (!b || *a <= *b) ? a : b;
}

/// The threads of everything that has threads of its own in production: pools, executors,
/// checkpoint handlers, observers and the log. They are real threads, so that a function can wait
/// in its middle. But a single thread runs at a time: run() gives a thread the turn, and waits
/// until the thread gives it back, when its function has ended or waits (resume, hand_back). So
/// everything has an order, the same in each run.
///
/// Thread safety: the thread with the turn may call all functions. Since the turn passes on under
/// mutex_, the members need no further lock.
class virtual_threads {
 public:
  using time_point = virtual_clock::clock::time_point;

  /// Threads that run functions from the same queue, or of the same executor.
  class group {
   public:
    [[nodiscard]] bool is_idle() const noexcept { return running_ == 0; }

   private:
    friend class virtual_threads;
    std::size_t thread_count_ = 1;
    std::optional<detail::virtual_scheduler::executor> executor_;  // without one functions_ are run
    std::deque<std::pair<std::uint64_t, std::function<void()>>> functions_;  // with their numbers
    std::size_t running_ = 0;  // functions that have begun, also those that wait
    bool has_ended_ = false;
  };

  virtual_threads(std::shared_ptr<usage> usage, std::shared_ptr<const virtual_clock> clock,
                  std::shared_ptr<idle_time> idle)
      : usage_(std::move(usage)), clock_(std::move(clock)), idle_(std::move(idle)) {}
  virtual_threads(const virtual_threads&) = delete;
  virtual_threads& operator=(const virtual_threads&) = delete;
  ~virtual_threads() { end(); }

  [[nodiscard]] std::shared_ptr<group> add_group(
      std::size_t threads, std::optional<detail::virtual_scheduler::executor> executor = {});
  /// Adds a function; without effect after the end of the group.
  void post(group& target, std::function<void()> function);
  /// Drops the functions of the group that have not begun. From now on none of them begins.
  void close(const std::shared_ptr<group>& closed);
  /// Ends the functions of the group that wait, by process_ended.
  void end(group& ended);

  /// Which functions may run: only those that are ready at any time, or also executors, and waits
  /// that end now. A timer of the same time comes before the waits, as in production, where a wait
  /// begins after the timer that watches it.
  enum class share { untimed, all };
  /// Runs functions until each has ended or waits. Ends early when functions start each other
  /// without end. False when no function was ready.
  /// Errors: std::runtime_error when no thread can be started for one more function that waits.
  bool run(share what);
  /// When the passing of time makes a function ready.
  [[nodiscard]] std::optional<time_point> next_timer() const;
  [[nodiscard]] bool runs_executors() const noexcept;
  /// Whether a thread has the turn.
  [[nodiscard]] bool is_running() const noexcept { return current_ != nullptr; }
  /// Whether the caller is on the thread that has the turn.
  [[nodiscard]] bool is_caller() const noexcept;
  /// Whether functions have begun and wait.
  [[nodiscard]] bool are_waiting() const noexcept { return !waiting_.empty(); }
  /// To be called on a thread that has the turn: gives it back until the wait is over.
  /// Errors: process_ended after the end of the group.
  void wait(time_point deadline, const std::function<bool()>& is_over);

  /// Drops functions that have not begun, and ends those that wait by process_ended. Joins all
  /// threads but the caller's.
  void end();

  /// Runs the stop callbacks to their end, on a thread of their own: the caller's is in the middle
  /// of an event.
  static void request_stop(std::stop_source source);
  /// Whether the caller is a stop callback. A request from there is too late, and an exception
  /// would end the test's process.
  [[nodiscard]] static bool is_stop_thread() noexcept;

 private:
  struct thread {
    std::thread real;
    std::condition_variable gets_turn;
    std::condition_variable gives_turn_back;
    bool has_turn = false;  // guarded by mutex_
    bool has_ended = false;
    group* runs = nullptr;  // the group whose function it runs
    // The present wait.
    time_point deadline{};
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
  std::mutex mutex_;  // guards thread::has_turn; whoever has the turn uses all other members
  std::vector<std::unique_ptr<thread>> threads_;
  std::vector<thread*> idle_threads_;
  std::vector<thread*> waiting_;  // in the order in which their waits began
  std::vector<std::shared_ptr<group>> groups_;
  std::uint64_t last_function_number_ = 0;
  thread* current_ = nullptr;  // has the turn; null: the thread that calls run() has it
  share runs_ = share::all;
  bool has_run_ = false;  // since the last resume() a function has run
  bool has_ended_ = false;
};

}  // namespace kclxx::testing

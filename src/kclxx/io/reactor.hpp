// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>

#include "io/descriptor.hpp"

namespace kclxx::io {

struct event_loop;

/// The input descriptor and the timers of a session on an event loop. The reactor has a loop of its
/// own, which run() serves, or shares a loop with the reactors of further sessions.
///
/// Thread safety: handlers run on the loop's thread, and do not throw. arm, resume and stop may be
/// called from any thread.
class reactor {
 public:
  struct handlers {
    /// Reading begins or continues, or input or its end has come. Called again until leave_input().
    /// It must check for input before it reads: see io::has_input().
    std::function<void()> readable;
    /// A timer that was armed fired.
    std::function<void(std::size_t index)> timer;
  };

  /// Reading begins with resume(). A precondition of resume() is that the input can be watched; a
  /// plain file cannot (io::is_file). `shared`: a loop that the caller runs, and that outlives the
  /// reactor; nullptr: a loop of its own.
  /// Errors: boost::system::system_error, a std::exception.
  reactor(int input, std::size_t timers, handlers calls, event_loop* shared = nullptr);
  ~reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  /// Serves a loop of its own until stop().
  void run();
  void stop();
  /// From now on no handler is called, and the input is left alone. To be called on the loop's
  /// thread, or after the end of run().
  void leave_loop();
  /// Fires the timer once after this time. Arming it again replaces it.
  void arm(std::size_t timer, std::chrono::milliseconds delay);
  /// From now on the loop does not look at the input, which another thread may read. To be called
  /// on the loop's thread.
  void leave_input();
  /// Undoes leave_input(), and lets the loop call `readable`.
  void resume();

 private:
  struct state;
  std::shared_ptr<state> state_;  // also held by functions that wait on a shared loop
};

/// Whether a read returns at once: with input, its end, or an error. Check it between a wait of
/// Asio's and a call that may block. Asio may complete the wait on a descriptor too early, when it
/// has just released a descriptor with the same number that was ready.
[[nodiscard]] bool has_input(int fd) noexcept;

/// Whether nobody can write to a pipe, socket or terminal any more. Bytes that were written before
/// may still wait to be read.
[[nodiscard]] bool has_ended(int fd) noexcept;

/// Waits until a descriptor has input, or until another thread wakes it.
///
/// Thread safety: a single thread calls wait(); wake() may be called from any thread.
class input_poll {
 public:
  enum class result { readable, woken, timed_out };

  /// Errors: std::system_error.
  explicit input_poll(int input);

  /// `readable` also means that the writer is gone: the read will tell. Without a limit the wait
  /// lasts until input or wake().
  /// Errors: std::system_error.
  result wait(std::optional<std::chrono::milliseconds> limit);
  /// Lets the present wait, or the next wait, return.
  void wake() noexcept;

 private:
  int input_;
  descriptor wake_;  // an eventfd
};

}  // namespace kclxx::io

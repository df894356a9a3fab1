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

/// One input descriptor and a few timers of a session on an event loop: its own, which run()
/// serves, or one that it shares with others.
///
/// Thread safety: handlers run on the loop's thread, and do not throw. arm, resume and stop from
/// any thread.
class reactor {
 public:
  struct handlers {
    /// Reading begins or continues, or input or its end is there. Called again until leave_input().
    /// Must look whether there is input before it reads: see io::has_input().
    std::function<void()> readable;
    /// A timer that was armed fired.
    std::function<void(std::size_t index)> timer;
  };

  /// Reading begins with resume(). Precondition of that: the input can be watched; a plain file
  /// cannot (io::is_file). `shared`: a loop that outlives it and that others run; nullptr: its own.
  /// Errors: boost::system::system_error, a std::exception.
  reactor(int input, std::size_t timers, handlers calls, event_loop* shared = nullptr);
  ~reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  /// Its own loop: serves until stop().
  void run();
  void stop();
  /// On the loop's thread, or after its own run(): no handler is called from now on, and the input
  /// is left alone.
  void leave_loop();
  /// Fires once after this time; arming again replaces. Any thread.
  void arm(std::size_t timer, std::chrono::milliseconds delay);
  /// On the loop's thread only: no look at the input, which another thread may read from now on.
  void leave_input();
  /// Any thread: undoes leave_input(), and calls `readable`.
  void resume();

 private:
  struct state;
  std::shared_ptr<state> state_;  // with what waits on a shared loop
};

/// Whether a read returns at once: with input, its end, or an error. To be asked after each wait of
/// Asio's before what might block: Asio completes a wait on a descriptor that it registers where
/// another one was just released, and was ready.
[[nodiscard]] bool has_input(int fd) noexcept;

/// Whether nobody can write to a pipe, socket or terminal any more. What was written before may
/// still be there to be read.
[[nodiscard]] bool has_ended(int fd) noexcept;

/// Waits until a descriptor has input, or until another thread wakes it.
///
/// Thread safety: wait() on one thread, wake() from any.
class input_poll {
 public:
  enum class result { readable, woken, timed_out };

  /// Errors: std::system_error.
  explicit input_poll(int input);

  /// `readable` too when the writer is gone: the read will tell. Without a limit it waits until
  /// then. Errors: std::system_error.
  result wait(std::optional<std::chrono::milliseconds> limit);
  /// Lets the wait that is under way, or the next one, return.
  void wake() noexcept;

 private:
  int input_;
  descriptor wake_;  // an eventfd
};

}  // namespace kclxx::io

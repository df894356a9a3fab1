// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

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

}  // namespace kclxx::io

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
    /// Input is there (or its end): read once, which does not block. Called again until pause().
    std::function<void()> readable;
    /// Reading begins or continues: what was read before may be delivered. Must not read.
    std::function<void()> resumed;
    /// The writer hung up while reading is paused. Called at most once.
    std::function<void()> hung_up;
    /// A timer that was armed fired.
    std::function<void(std::size_t index)> timer;
  };

  /// `is_file`: the input is always readable, and cannot be polled. Reading begins with resume().
  /// `shared`: a loop that outlives it and that others run; nullptr: its own.
  /// Errors: boost::system::system_error, a std::exception.
  reactor(int input, bool is_file, std::size_t timers, handlers calls,
          event_loop* shared = nullptr);
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
  /// On the loop's thread only: stop calling `readable`.
  void pause();
  /// On the loop's thread only: the same, and without looking at the input at all, which another
  /// thread reads from now on.
  void leave_input();
  /// Any thread: undoes both, and calls `resumed`.
  void resume();

 private:
  struct state;
  std::shared_ptr<state> state_;  // with what waits on a shared loop
};

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>

namespace kclxx::io {

/// The protocol thread's loop over one input descriptor and a few timers: Boost.Asio, kept out of
/// every other file.
///
/// Thread safety: run() on one thread; handlers run there. arm, resume and stop from any thread.
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
    std::function<void(std::size_t which)> timer;
  };

  /// `is_file`: the input is always readable, and cannot be polled. Reading begins with resume().
  /// Errors: boost::system::system_error, a std::exception.
  reactor(int input, bool is_file, std::size_t timers, handlers on);
  ~reactor();
  reactor(const reactor&) = delete;
  reactor& operator=(const reactor&) = delete;

  /// Serves until stop().
  void run();
  void stop();
  /// Fires once after this time; arming again replaces. Any thread.
  void arm(std::size_t which, std::chrono::milliseconds after);
  /// On the thread of run() only: stop calling `readable`.
  void pause();
  /// On the thread of run() only: the same, and without looking at the input at all, which another
  /// thread reads from now on.
  void leave_input();
  /// Any thread: undoes both, and calls `resumed`.
  void resume();

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace kclxx::io

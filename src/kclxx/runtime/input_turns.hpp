// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>

#include "driver/file_dialogue.hpp"
#include "io/input_poll.hpp"
#include "io/reactor.hpp"
#include "runtime/line_input.hpp"
#include "runtime/synchronized_session.hpp"

namespace kclxx::runtime {

class callbacks_thread;

/// Whose turn it is to read the daemon's lines.
///
/// In lockstep with a daemon the callbacks' thread has nothing else to do between two callbacks and
/// while it waits for an answer, so it reads: no batch costs a hop between threads. When user code
/// lasts, or another thread waits for an answer, or the input is ahead of the dialogue, the
/// protocol thread takes reading over until the next call.
class input_turns final : private line_sink {
 public:
  using clock = std::chrono::steady_clock;
  using time_point = clock::time_point;
  struct configuration {
    int input;
    bool is_file;
    std::size_t max_line_length;
    // The loop's timers.
    std::size_t idle_timer;
    std::size_t watch_timer;
  };

  /// Errors: std::exception when a descriptor cannot be had.
  input_turns(const configuration& with, synchronized_session& session, callbacks_thread& callbacks,
              io::reactor& loop);

  // Under the lock.
  /// When it has nothing else to do; else it is the protocol thread's turn.
  [[nodiscard]] bool is_callbacks_threads() const noexcept { return is_callbacks_threads_; }
  void hand_over();
  /// A read of the callbacks' thread that is under way returns.
  void wake_reader();
  /// Hands over when user code lasts, or at once when somebody waits for an answer.
  void on_user_code_begins();

  // On the callbacks' thread, under the lock, which they release while they wait.
  /// Waits for input once, and delivers it.
  void read(std::unique_lock<std::mutex>& lock, const std::optional<time_point>& deadline);
  /// While it is its turn, until the call is answered; on another thread it hands over instead.
  void read_until_answered(std::unique_lock<std::mutex>& lock,
                           const synchronized_session::waiting_call& call,
                           const std::optional<time_point>& deadline);

  // On the protocol thread, without the lock.
  void on_readable();
  void on_resumed();
  void on_hung_up();
  void on_idle();
  void on_watch();

 private:
  enum class outcome {
    lockstep,  ///< nothing lies after the last line
    ahead,     ///< something does
    ended,     ///< the end of input was delivered
  };

  void on_line(std::variant<driver::line_decoder::decoded, driver::line_decoder::bad_line,
                            driver::line_decoder::blank>
                   line,
               bool has_replaced_utf8) override;
  void on_end_of_input(bool unfinished_line, int error) override;
  [[nodiscard]] bool is_full() const override;
  [[nodiscard]] bool is_over() const override;

  outcome read_once(const std::optional<time_point>& deadline);
  void after_reading();
  bool give_back();
  void watch();

  configuration with_;
  synchronized_session& session_;
  callbacks_thread& callbacks_;
  io::reactor& loop_;
  bool is_callbacks_threads_;
  bool is_in_read_ = false;  // the callbacks' thread, right now
  bool is_watched_ = false;

  // Of whichever thread reads.
  line_input input_;
  std::optional<driver::file_dialogue> file_;  // of the protocol thread, which alone reads it
  bool has_ended_ = false;
  io::input_poll poll_;
};

}  // namespace kclxx::runtime

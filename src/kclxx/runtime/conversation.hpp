// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>

#include <kclxx/run.hpp>
#include <kclxx/run_options.hpp>

#include "base/checkpoint_port.hpp"
#include "runtime/logger.hpp"
#include "session/session.hpp"

namespace kclxx::runtime {

/// After one read on the processor thread.
enum class read_outcome {
  lockstep,  ///< nothing lies behind the last line
  ahead,     ///< something does
  ended,     ///< the end of input was delivered
};

/// The session behind one mutex. Whichever thread brings an event feeds it and carries out what
/// it decides: lines are written under the lock, in order; logs, the stop token and completions
/// come after it is released, so that user code may call back.
///
/// Thread safety: all functions from any thread, except those marked otherwise.
class conversation final : public detail::checkpoint_port {
 public:
  using clock = std::chrono::steady_clock;
  /// How the other parts are told; called under the lock, must not call back.
  struct surroundings {
    std::function<void(session::timer, std::chrono::milliseconds)> arm;
    /// The protocol thread shall read, or go on.
    std::function<void()> resume_reading;
    std::function<void()> left;
    /// The protocol thread shall call on_watch after this time.
    std::function<void(std::chrono::milliseconds)> watch;
    /// The protocol thread shall call fire_stop.
    std::function<void()> stop_soon;
    /// Wakes the processor thread out of `read`.
    std::function<void()> wake;
    /// On the processor thread, without the lock: waits for input or `wake`, reads once, delivers.
    /// What is left: see read_outcome.
    std::function<read_outcome(const std::optional<clock::time_point>& deadline)> read;
  };

  conversation(const run_options& options, bool input_is_file, int output,
               std::shared_ptr<logger> log, surroundings around);

  // Events, from the thread that reads or, with time, the protocol thread.
  void on_message(protocol::message message, record_batch batch);
  void on_bad_line(const std::string& text);
  void on_end_of_input(bool unfinished_line);
  void on_timer(session::timer which);
  /// The time that was asked for by `watch` is over. True when the protocol thread is to read from
  /// now on, since a callback lasts.
  bool on_watch();
  /// After the protocol thread has read; `is_ahead` when it has more than it delivered. True when
  /// the processor thread reads from now on.
  bool give_back_reading(bool is_ahead);
  [[nodiscard]] bool is_protocol_thread_reading() const;
  /// Fires the stop token if that is due.
  void fire_stop();

  // The processor thread: the one that calls next_call first.
  /// Blocking: until there is a callback to run; std::nullopt once the conversation is over.
  std::optional<session::call> next_call();
  void on_callback_returned();
  void on_callback_threw(const std::string& what);

  [[nodiscard]] std::stop_token stop_token() const { return stop_.get_token(); }
  [[nodiscard]] bool is_reading_paused() const;
  /// Set once the conversation is over.
  [[nodiscard]] std::optional<exit_status> status() const;
  [[nodiscard]] bool is_callback_running() const;

  result wait(const std::optional<sequence_position>& position,
              const std::optional<clock::time_point>& deadline) override;
  std::error_code request(const std::optional<sequence_position>& position) override;

 private:
  /// Collects what an event leads to, and carries it out.
  class turn;
  struct waiting_call {
    std::condition_variable answered;
    std::optional<result> outcome;
  };

  // Who reads; with the lock held (conversation_reading.cpp).
  void read(std::unique_lock<std::mutex>& lock, const std::optional<clock::time_point>& deadline);
  void read_until_answered(std::unique_lock<std::mutex>& lock, const waiting_call& mine,
                           const std::optional<clock::time_point>& deadline);
  void begin_callback();
  void hand_reading_over();
  void watch_callback();
  [[nodiscard]] bool is_in_callback_of_reader() const;
  void wake_reader();

  std::shared_ptr<logger> log_;  // a handle of the user's may outlive run()
  surroundings around_;
  int output_;
  bool input_is_file_;
  std::stop_source stop_;
  mutable std::mutex mutex_;
  session::session session_;
  session::actions actions_;  // reused between turns
  std::string lines_;         // likewise
  std::condition_variable has_call_;
  std::optional<session::call> call_;
  std::unordered_map<session::waiter_id, waiting_call*> waiting_;
  session::waiter_id next_waiter_ = 1;
  std::optional<exit_status> status_;
  std::thread::id processor_thread_;
  bool is_paused_ = false;
  bool is_callback_running_ = false;
  clock::time_point callback_began_{};
  bool is_processor_thread_reading_;  // when it has nothing else to do; else the protocol thread
  bool is_in_read_ = false;           // the processor thread, right now
  bool is_watched_ = false;
  bool is_stop_due_ = false;  // left to the protocol thread, or to the callback's end
};

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
#include "runtime/input_turns.hpp"

#include <algorithm>
#include <utility>

#include "runtime/callbacks_thread.hpp"

namespace kclxx::runtime {

using std::chrono::milliseconds;

input_turns::input_turns(const configuration& with, synchronized_session& session,
                         callbacks_thread& callbacks, io::reactor& loop)
    : with_(with),
      session_(session),
      callbacks_(callbacks),
      loop_(loop),
      is_callbacks_threads_(!with.is_file),
      input_(with.input, with.max_line_length, *this),
      poll_(with.input) {
  if (with.is_file) file_.emplace(session.driver);
}

void input_turns::on_line(std::variant<driver::line_decoder::decoded,
                                       driver::line_decoder::bad_line, driver::line_decoder::blank>
                              line,
                          bool has_replaced_utf8) {
  const synchronized_session::event now(session_);
  if (has_replaced_utf8) session_.driver.on_utf8_warning();
  file_ ? file_->on_line(std::move(line)) : session_.driver.on_line(std::move(line));
}

void input_turns::on_end_of_input(bool unfinished_line, int error) {
  const synchronized_session::event now(session_);
  if (file_ && !unfinished_line && error == 0) return file_->on_end();
  session_.driver.on_end_of_input(unfinished_line, error);
}

void input_turns::on_hung_up() {
  const synchronized_session::event now(session_);
  session_.driver.on_end_of_input(false);
}

bool input_turns::is_full() const {
  const std::lock_guard lock(session_.mutex);
  return session_.driver.status() || session_.output.keeps_lines() || (file_ && file_->is_full());
}

bool input_turns::is_over() const {
  const std::lock_guard lock(session_.mutex);
  return session_.driver.status().has_value();
}

void input_turns::hand_over() {
  is_callbacks_threads_ = false;
  loop_.resume();
}

bool input_turns::give_back() {
  const std::lock_guard lock(session_.mutex);
  if (file_ || input_.is_ahead() || session_.driver.status() || !session_.waiting.empty()) {
    return false;
  }
  if (callbacks_.is_in_user_code()) {
    if (clock::now() - callbacks_.user_code_began() >= session::callback_patience) return false;
    watch();
  }
  is_callbacks_threads_ = true;
  callbacks_.wake();
  return true;
}

void input_turns::on_user_code_begins() {
  if (is_callbacks_threads_ && !session_.waiting.empty()) hand_over();
  watch();
}

// One watch serves many short callbacks: it is started again only when it is over.
void input_turns::watch() {
  if (std::exchange(is_watched_, true)) return;
  const auto left = std::chrono::ceil<milliseconds>(callbacks_.user_code_began() +
                                                    session::callback_patience - clock::now());
  loop_.arm(with_.watch_timer, left > milliseconds(0) ? left : session::callback_patience);
}

void input_turns::on_watch() {
  const synchronized_session::event now(session_);
  is_watched_ = false;
  // In a read, the callbacks' thread starts the watch again when it is through.
  if (!callbacks_.is_in_user_code() || is_in_read_ || session_.driver.status()) return;
  if (clock::now() - callbacks_.user_code_began() < session::callback_patience) return watch();
  if (is_callbacks_threads_) hand_over();
  session_.driver.on_callback_lasts();
}

void input_turns::wake_reader() {
  if (is_in_read_ && !callbacks_.is_this_thread()) poll_.wake();
}

void input_turns::read(std::unique_lock<std::mutex>& lock,
                       const std::optional<time_point>& deadline) {
  is_in_read_ = true;
  lock.unlock();
  outcome found{};
  try {
    found = read_once(deadline);
  } catch (...) {
    lock.lock();
    is_in_read_ = false;
    throw;
  }
  lock.lock();
  is_in_read_ = false;
  // Between two actions a partial line does not mean that the input is ahead.
  const bool is_needed = callbacks_.has_work() || session_.output.keeps_lines();
  if (found == outcome::ended || (found == outcome::ahead && is_needed)) {
    hand_over();
  }
}

input_turns::outcome input_turns::read_once(const std::optional<time_point>& deadline) {
  std::optional<milliseconds> limit;
  if (input_.holds_large_memory()) limit = line_input::idle_time;
  if (deadline) {
    const auto left = std::chrono::ceil<milliseconds>(*deadline - clock::now());
    limit = limit ? std::min(*limit, left) : left;
  }
  const auto found = poll_.wait(limit);
  if (found == io::input_poll::result::timed_out) input_.on_idle();
  if (found == io::input_poll::result::readable) {
    has_ended_ = input_.on_readable() == line_input::state::ended;
  }
  if (has_ended_) return outcome::ended;
  return input_.is_ahead() ? outcome::ahead : outcome::lockstep;
}

void input_turns::read_until_answered(std::unique_lock<std::mutex>& lock,
                                      const synchronized_session::waiting_call& call,
                                      const std::optional<time_point>& deadline) {
  if (callbacks_.is_this_thread() && callbacks_.is_in_user_code() && is_callbacks_threads_) {
    while (!call.result && is_callbacks_threads_ && (!deadline || clock::now() < *deadline)) {
      read(lock, deadline);
    }
    // The answers of others are still to come.
    if (is_callbacks_threads_ && !session_.waiting.empty()) hand_over();
    // The user's code continues.
    watch();
  } else if (!call.result && is_callbacks_threads_ && !is_in_read_) {
    hand_over();
  }
}

void input_turns::on_resumed() {
  {
    const synchronized_session::event now(session_);
    if (is_callbacks_threads_) {
      loop_.leave_input();
      return;
    }
    if (file_) file_->resume();
  }
  if (!has_ended_) input_.on_resumed();
  if (input_.holds_large_memory()) loop_.arm(with_.idle_timer, line_input::idle_time);
  after_reading();
}

void input_turns::on_readable() {
  const bool held_large = input_.holds_large_memory();
  has_ended_ = input_.on_readable() == line_input::state::ended;
  if (!held_large && input_.holds_large_memory()) {
    loop_.arm(with_.idle_timer, line_input::idle_time);
  }
  after_reading();
}

/// Comes last: input_ may be the callbacks' thread's then.
void input_turns::after_reading() {
  if (has_ended_ || is_full()) {
    loop_.pause();
  } else if (give_back()) {
    loop_.leave_input();
  }
}

void input_turns::on_idle() {
  {
    const std::lock_guard lock(session_.mutex);
    if (is_callbacks_threads_) return;
  }
  input_.on_idle();
  if (input_.holds_large_memory()) loop_.arm(with_.idle_timer, line_input::idle_time);
}

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
// Who reads the daemon's lines. In lockstep it is the processor thread, since it has nothing else
// to do between two callbacks and while it waits for an answer: no batch costs a hop between
// threads. Where a callback lasts, or another thread waits for an answer, or the input is ahead of
// the dialogue, the protocol thread takes over until the next call.
#include <chrono>
#include <utility>

#include "runtime/conversation.hpp"

namespace kclxx::runtime {

void conversation::read(std::unique_lock<std::mutex>& lock,
                        const std::optional<clock::time_point>& deadline) {
  is_in_read_ = true;
  lock.unlock();
  read_outcome outcome{};
  try {
    outcome = around_.read(deadline);
  } catch (...) {
    lock.lock();
    is_in_read_ = false;
    throw;
  }
  lock.lock();
  is_in_read_ = false;
  const bool is_open = call_ || is_callback_running_;
  // Between two actions a part of a line is no more than that.
  if (outcome == read_outcome::ended || is_paused_ || (outcome == read_outcome::ahead && is_open)) {
    hand_reading_over();
  }
}

void conversation::read_until_answered(std::unique_lock<std::mutex>& lock, const waiting_call& mine,
                                       const std::optional<clock::time_point>& deadline) {
  if (is_in_callback_of_reader()) {
    while (!mine.outcome && is_processor_thread_reading_ &&
           (!deadline || clock::now() < *deadline)) {
      read(lock, deadline);
    }
    // The answers of others are still to come.
    if (is_processor_thread_reading_ && !waiting_.empty()) hand_reading_over();
  } else if (!mine.outcome && is_processor_thread_reading_ && !is_in_read_) {
    // The processor thread is in user code, be it a callback, a log function or a stop_callback.
    hand_reading_over();
  }
}

void conversation::begin_callback() {
  is_callback_running_ = true;
  callback_began_ = clock::now();
  if (!is_processor_thread_reading_) return;
  if (!waiting_.empty()) {
    hand_reading_over();
  } else {
    watch_callback();
  }
}

// One watch serves many short callbacks: it is asked for again only when it is over.
void conversation::watch_callback() {
  if (std::exchange(is_watched_, true)) return;
  using std::chrono::milliseconds;
  const auto left =
      std::chrono::ceil<milliseconds>(callback_began_ + session::callback_patience - clock::now());
  around_.watch(left > milliseconds(0) ? left : session::callback_patience);
}

void conversation::hand_reading_over() {
  is_processor_thread_reading_ = false;
  around_.resume_reading();
}

bool conversation::is_in_callback_of_reader() const {
  return is_callback_running_ && is_processor_thread_reading_ &&
         std::this_thread::get_id() == processor_thread_;
}

void conversation::wake_reader() {
  if (is_in_read_ && std::this_thread::get_id() != processor_thread_) around_.wake();
}

bool conversation::give_back_reading(bool is_ahead) {
  const std::lock_guard lock(mutex_);
  if (input_is_file_ || is_ahead || is_paused_ || status_ || !waiting_.empty()) return false;
  if (is_callback_running_) {
    if (clock::now() - callback_began_ >= session::callback_patience) return false;
    watch_callback();
  }
  is_processor_thread_reading_ = true;
  has_call_.notify_one();
  return true;
}

bool conversation::is_protocol_thread_reading() const {
  const std::lock_guard lock(mutex_);
  return !is_processor_thread_reading_;
}

}  // namespace kclxx::runtime

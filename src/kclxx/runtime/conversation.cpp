// SPDX-License-Identifier: Apache-2.0
#include "runtime/conversation.hpp"

#include <random>
#include <utility>
#include <vector>

#include "io/line_writer.hpp"
#include "protocol/encoder.hpp"

namespace kclxx::runtime {

using session::actions;

/// Holds the lock while it lives; finish() carries out what was decided.
class conversation::turn {
 public:
  explicit turn(conversation& owner) : owner_(owner), lock_(owner.mutex_) {
    owner_.actions_.clear();
  }

  actions& decided() { return owner_.actions_; }
  std::unique_lock<std::mutex>& lock() { return lock_; }

  /// Carries out all that belongs under the lock.
  void perform() {
    for (session::action& one : owner_.actions_) {
      std::visit([this](auto& what) { carry_out(what); }, one);
    }
    owner_.actions_.clear();
    flush();
    // Not inside the callback's own checkpoint(): it may hold what a stop_callback wants.
    if (stop_ && owner_.is_callback_running_ &&
        std::this_thread::get_id() == owner_.processor_thread_) {
      stop_ = false;
      owner_.is_stop_due_ = true;
      owner_.around_.stop_soon();
    }
  }

  void finish() {
    perform();
    lock_.unlock();
    speak();
  }

  /// User code: without the lock.
  void speak() {
    for (const session::log_line& line : logs_) (*owner_.log_)(line.level, line.text);
    logs_.clear();
    if (std::exchange(stop_, false)) owner_.stop_.request_stop();
  }

 private:
  void flush() {
    if (owner_.lines_.empty()) return;
    const std::error_code ec = io::write_all(owner_.output_, owner_.lines_);
    owner_.lines_.clear();
    if (!ec) return;
    actions more;
    owner_.session_.on_output_broken(ec.message(), more);
    for (session::action& one : more) {
      std::visit([this](auto& what) { carry_out(what); }, one);
    }
    owner_.lines_.clear();
  }

  void carry_out(session::write_checkpoint& what) {
    protocol::append_checkpoint(
        owner_.lines_, what.position.is_number() ? std::optional(what.position) : std::nullopt);
  }
  void carry_out(session::write_status& what) {
    protocol::append_status(owner_.lines_, what.action);
  }
  void carry_out(session::call& what) {
    owner_.call_ = std::move(what);
    owner_.has_call_.notify_one();
    owner_.wake_reader();
  }
  void carry_out(session::complete& what) {
    const auto found = owner_.waiting_.find(what.waiter);
    if (found == owner_.waiting_.end()) return;
    found->second->outcome = result{what.result, std::move(what.name)};
    found->second->answered.notify_one();
    owner_.waiting_.erase(found);
    owner_.wake_reader();
  }
  void carry_out(session::arm_timer& what) { owner_.around_.arm(what.which, what.after); }
  void carry_out(session::log_line& what) { logs_.push_back(std::move(what)); }
  void carry_out(session::pause_reading&) { owner_.is_paused_ = true; }
  void carry_out(session::resume_reading&) {
    owner_.is_paused_ = false;
    owner_.around_.resume_reading();
  }
  void carry_out(session::request_stop&) { stop_ = true; }
  void carry_out(session::leave& what) {
    flush();
    owner_.status_ = what.status;
    owner_.call_.reset();
    owner_.has_call_.notify_all();
    owner_.wake_reader();
    owner_.around_.left();
  }

  conversation& owner_;
  std::unique_lock<std::mutex> lock_;
  std::vector<session::log_line> logs_;
  bool stop_ = false;
};

conversation::conversation(const run_options& options, bool input_is_file, int output,
                           std::shared_ptr<logger> log, surroundings around)
    : log_(std::move(log)),
      around_(std::move(around)),
      output_(output),
      input_is_file_(input_is_file),
      session_(options, input_is_file, std::random_device{}()),
      is_processor_thread_reading_(!input_is_file) {}

void conversation::on_message(protocol::message message, record_batch batch) {
  turn now(*this);
  session_.on_message(std::move(message), std::move(batch), clock::now(), now.decided());
  now.finish();
}

void conversation::on_bad_line(const std::string& text) {
  turn now(*this);
  session_.on_bad_line(text, now.decided());
  now.finish();
}

void conversation::on_end_of_input(bool unfinished_line) {
  turn now(*this);
  session_.on_end_of_input(unfinished_line, clock::now(), now.decided());
  now.finish();
}

void conversation::on_timer(session::timer which) {
  turn now(*this);
  session_.on_timer(which, clock::now(), now.decided());
  now.finish();
}

bool conversation::on_watch() {
  turn now(*this);
  is_watched_ = false;
  if (!is_callback_running_ || !is_processor_thread_reading_ || status_) return false;
  if (is_in_read_ || clock::now() - callback_began_ < session::callback_patience) {
    watch_callback();
    return false;
  }
  is_processor_thread_reading_ = false;
  session_.on_callback_lasts(clock::now(), now.decided());
  now.finish();
  return true;
}

std::optional<session::call> conversation::next_call() {
  std::unique_lock lock(mutex_);
  processor_thread_ = std::this_thread::get_id();
  while (!call_ && !status_) {
    if (is_processor_thread_reading_) {
      read(lock, std::nullopt);
    } else {
      has_call_.wait(lock);
    }
  }
  if (call_) begin_callback();
  return std::exchange(call_, std::nullopt);
}

void conversation::fire_stop() {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(is_stop_due_, false)) return;
  }
  stop_.request_stop();
}

void conversation::on_callback_returned() {
  fire_stop();
  turn now(*this);
  is_callback_running_ = false;
  session_.on_callback_returned(clock::now(), now.decided());
  now.finish();
}

void conversation::on_callback_threw(const std::string& what) {
  fire_stop();
  turn now(*this);
  is_callback_running_ = false;
  session_.on_callback_threw(what, clock::now(), now.decided());
  now.finish();
}

bool conversation::is_reading_paused() const {
  const std::lock_guard lock(mutex_);
  return is_paused_;
}

std::optional<exit_status> conversation::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

bool conversation::is_callback_running() const {
  const std::lock_guard lock(mutex_);
  return is_callback_running_;
}

conversation::result conversation::wait(const std::optional<sequence_position>& position,
                                        const std::optional<clock::time_point>& deadline) {
  waiting_call mine;
  turn now(*this);
  const session::waiter_id id = next_waiter_++;
  waiting_.emplace(id, &mine);
  session_.on_checkpoint(id, position, std::this_thread::get_id() == processor_thread_,
                         clock::now(), now.decided());
  now.perform();
  // What was decided may have a log line or a stop; say it before going to sleep.
  now.lock().unlock();
  now.speak();
  now.lock().lock();
  try {
    read_until_answered(now.lock(), mine, deadline);
  } catch (...) {  // no memory for a line: nobody may answer into this frame
    waiting_.erase(id);
    actions_.clear();
    session_.on_deadline(id, clock::now(), now.decided());
    now.finish();
    throw;
  }
  const auto is_done = [&] { return mine.outcome.has_value(); };
  if (!deadline) {
    mine.answered.wait(now.lock(), is_done);
  } else if (!mine.answered.wait_until(now.lock(), *deadline, is_done)) {
    waiting_.erase(id);
    actions_.clear();
    session_.on_deadline(id, clock::now(), now.decided());
    now.finish();
    return {make_error_code(errc::timed_out), {}};
  }
  return std::move(*mine.outcome);
}

std::error_code conversation::request(const std::optional<sequence_position>& position) {
  turn now(*this);
  const std::error_code ec = is_in_callback_of_reader()
                                 ? session_.on_request_for_later(position)
                                 : session_.on_request(position, clock::now(), now.decided());
  now.finish();
  return ec;
}

}  // namespace kclxx::runtime

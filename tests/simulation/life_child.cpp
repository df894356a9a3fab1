// SPDX-License-Identifier: Apache-2.0
// What the child does in one life: the host of its session driver.
#include <algorithm>
#include <exception>
#include <utility>

#include "base/names.hpp"
#include "simulation/life.hpp"

namespace kclxx::simulation {

namespace {

/// Unwinds the user's code when its process is gone.
struct process_is_gone {};

}  // namespace

/// What the processor's checkpointer and context are handles of.
class life::service final : public shard_service {
 public:
  explicit service(life& owner) : owner_(owner) {}

  void submit(const optional_position& position, checkpoint_handler handler) override {
    owner_.submit(position, std::move(handler));
  }
  std::error_code wait(const optional_position& position,
                       const std::optional<clock::time_point>& deadline) override {
    return owner_.wait(position, deadline);
  }
  [[nodiscard]] clock::time_point now() const override { return owner_.now_; }
  bool sleep_until(clock::time_point deadline) override {
    return !owner_.wait_until(deadline, [&] { return owner_.stop_.stop_requested(); });
  }
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override {
    return owner_.shard_timers_.start(owner_.now_ + delay, period, std::move(function));
  }
  void cancel_timer(timer_id timer) override { owner_.shard_timers_.cancel(timer); }
  void wait_until_notified(clock::time_point deadline) override {
    owner_.wait_until(deadline, [&] { return is_notified_ || owner_.stop_.stop_requested(); });
    is_notified_ = false;
  }
  void notify() override { is_notified_ = true; }
  [[nodiscard]] std::unique_ptr<thread_pool> make_thread_pool(std::size_t) override {
    throw violation("pool: nothing here starts threads yet");
  }
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>&) override {
    owner_.feed([&] { owner_.driver_.on_log(level, text); });
  }

 private:
  bool is_notified_ = false;
  life& owner_;
};

life::life(world& in, random_source& random, bool with_faults, trace& log, scheduler next)
    : world_(in),
      random_(random),
      with_faults_(with_faults),
      log_(log),
      next_(std::move(next)),
      start_(in.persisted),
      lease_(in.lease.take_over()),
      consumer_(daemon_model::kcl_version::v3, lease_),
      delivered_(in.resume_index()),
      processor_(in, random, with_faults, *this),
      driver_(processor_.factory(), in.options, false, static_cast<std::uint32_t>(random.next()),
              *this) {
  context_.service = std::make_shared<service>(*this);
  context_.stop_token = stop_.get_token();
  if (!with_faults_) return;
  lease_.set_fault([this](const sequence_position&) -> std::optional<std::string> {
    if (random_.chance(world_.faults.throttle)) {
      return random_.chance(50) ? "ThrottlingException" : "KinesisClientLibDependencyException";
    }
    if (random_.chance(world_.faults.fatal)) {
      return random_.chance(50) ? "InvalidStateException" : "SomethingNewException";
    }
    if (random_.chance(world_.faults.lease_stolen)) return "ShutdownException";
    return std::nullopt;
  });
}

// --- What it reads ---

void life::child_reads() {
  if (to_child_.empty()) {
    child_has_seen_end_ = true;
    return feed([&] { driver_.on_end_of_input(unfinished_line_); });
  }
  if (with_faults_ && random_.chance(world_.faults.damaged_line)) {
    if (random_.chance(50)) return read_line("\t ");
    to_child_.front() = "not JSON";
    note(fault::damaged_line);
    was_line_damaged_ = true;
  }
  const std::string line = std::move(to_child_.front());
  to_child_.pop_front();
  read_line(line);
}

void life::read_line(const std::string& text) {
  auto memory = memory_.take();
  memory->line.grow(text.size());
  text.copy(memory->line.data(), text.size());
  auto line = decoder_.decode(std::move(memory), text.size());
  if (const auto* decoded = std::get_if<driver::line_decoder::decoded>(&line)) {
    const auto* answer = std::get_if<protocol::checkpoint_answer>(&decoded->message.body);
    if (answer != nullptr) {
      --unanswered_;
      // Then the backoff replaces the interval.
      if (answer->error && is_retryable(make_checkpoint_error_code(*answer->error))) {
        last_checkpoint_.reset();
      }
    } else {
      may_write_ = true;
    }
  }
  feed([&] { driver_.on_line(std::move(line)); });
}

// --- User code ---

void life::next_event() {
  if (child_gone_) throw process_is_gone{};
  next_(*this);
  if (child_gone_) throw process_is_gone{};
}

void life::run_callback() {
  session::call what = *std::exchange(call_, std::nullopt);
  log_.note(
      [&] { return "  child: " + std::string(detail::callback_name(what.what)) + " begins"; });
  is_in_user_code_ = true;
  running_ = what.what;
  const auto result =
      driver_.run_callback(std::move(what), checkpointer(context_.service), context_);
  if (result.thrown && !child_gone_) note(fault::callback_throws);
  running_.reset();
  is_in_user_code_ = false;
  if (result.thrown) {
    try {
      std::rethrow_exception(result.thrown);
    } catch (const violation&) {
      throw;
    } catch (...) {
      if (child_gone_) return;
      is_failing_ = is_failing_ || !result.is_lease_gone;
    }
  }
  log_.note([&] { return "  child: the callback " + result.error.value_or("returns"); });
  feed([&] { driver_.on_callback_done(result); });
}

void life::fire_shard_timer() {
  now_ = std::max(now_, *shard_timers_.next_due());
  const auto timer = shard_timers_.take_due(now_);
  log_.note([] { return std::string("  child: a timer of the shard fires"); });
  is_in_user_code_ = true;
  std::exception_ptr failure;
  try {
    (*timer)();
  } catch (const violation&) {
    throw;
  } catch (const std::exception&) {
    failure = std::current_exception();
    note(fault::timer_throws);
  } catch (const process_is_gone&) {
    is_in_user_code_ = false;
    return;
  }
  is_in_user_code_ = false;
  if (!failure) return;
  is_failing_ = is_failing_ || !processor_.has_given_up();
  feed([&] { driver_.on_user_code_threw("a timer", failure); });
}

void life::run_one_handler() {
  auto [handler, result] = std::move(handlers_.front());
  handlers_.pop_front();
  try {
    handler(result);
  } catch (const violation&) {
    throw;
  } catch (const std::exception&) {
    note(fault::handler_throws);
    is_failing_ = true;
    if (!driver_.status()) {
      feed([&] { driver_.on_user_code_threw("a checkpoint handler", std::current_exception()); });
    }
  }
}

// --- Checkpoints ---

void life::submit(const optional_position& position, checkpoint_handler handler) {
  log_.note(
      [&] { return "  user: async_checkpoint " + (position ? to_string(*position) : "all"); });
  const bool from_callback = processor_.is_in_callback();
  feed([&] { driver_.on_submit(position, std::move(handler), from_callback); });
}

std::error_code life::wait(const optional_position& position,
                           const std::optional<time_point>& deadline) {
  log_.note([&] { return "  user: checkpoint " + (position ? to_string(*position) : "all"); });
  const bool from_callback = processor_.is_in_callback();
  const auto id = driver_.next_waiter();
  waiting_.emplace(id, std::nullopt);
  feed([&] { driver_.on_checkpoint(id, position, from_callback); });
  const bool is_answered =
      wait_until(deadline, [&] { return waiting_ && waiting_->second.has_value(); });
  const auto result = std::exchange(waiting_, std::nullopt)->second;
  if (is_answered) return *result;
  bool was_waiting = false;
  feed([&] { was_waiting = driver_.on_deadline(id); });
  if (!was_waiting) throw violation("waiter: a completed call was not woken");
  return errc::timed_out;
}

/// False when the deadline came first.
template <class Predicate>
bool life::wait_until(const std::optional<time_point>& deadline, Predicate is_over) {
  while (!is_over()) {
    if (child_gone_) throw process_is_gone{};
    if (deadline && now_ >= *deadline) return false;
    wait_ends_ = deadline;
    next_event();
    wait_ends_.reset();
  }
  return true;
}

void life::begin_wait(session::waiter_id id, const optional_position& at) {
  log_.note([&] { return "  thread: checkpoint " + (at ? to_string(*at) : "all"); });
  feed([&] { driver_.on_checkpoint(id, at, false); });
}

bool life::give_up(session::waiter_id id) {
  bool was_waiting = false;
  feed([&] { was_waiting = driver_.on_deadline(id); });
  return was_waiting;
}

// --- driver::host ---

void life::expect_alive(const char* what) const {
  if (driver_.status()) throw violation(std::string("end: something follows the end: ") + what);
}

std::error_code life::write(std::string_view lines) {
  expect_alive("a write");
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    write_line(std::string(lines.substr(0, end)));
    lines.remove_prefix(end + 1);
  }
  if (daemon_gone_) return std::make_error_code(std::errc::broken_pipe);
  return {};
}

void life::write_line(const std::string& line) {
  if (!line.empty()) {
    log_.note([&] { return "  child: " + line; });
    if (!may_write_) throw violation("order: the child writes while no action is open: " + line);
    if (line.find("\"checkpoint\"") != std::string::npos) {
      if (++unanswered_ > 1) throw violation("order: two checkpoints are unanswered");
      const bool is_paced = consumer_.is_waiting() && !is_failing_ &&
                            consumer_.waits_for() == protocol::action_kind::process_records &&
                            processor_.open_waits() == 0;
      if (is_paced && last_checkpoint_ &&
          now_ - *last_checkpoint_ < world_.options.checkpoint_interval) {
        throw violation("pace: nobody waits for " + line);
      }
      last_checkpoint_ = now_;
    } else {
      may_write_ = false;
    }
  }
  if (!daemon_gone_) to_daemon_.push_back(line);
}

void life::arm(session::timer which, std::chrono::milliseconds after) {
  expect_alive("a timer");
  timers_[static_cast<std::size_t>(which)] = now_ + after;
}

void life::call(session::call what) {
  expect_alive("a callback");
  if (call_) throw violation("overlap: a second callback is to begin");
  call_ = std::move(what);
}

void life::wake(session::waiter_id waiter, std::error_code result) {
  log_.note([&] { return "  child: wakes a waiting call: " + result.message(); });
  if (waiting_ && waiting_->first == waiter) {
    if (waiting_->second) throw violation("waiter: a waiting call was completed twice");
    waiting_->second = result;
  } else {
    processor_.woken(waiter, result);
  }
}

void life::pause_reading(bool) { expect_alive("a pause"); }

void life::left(exit_status status) {
  log_.note([&] { return "  child: leaves with " + std::to_string(static_cast<int>(status)); });
  const bool is_explained = [&] {
    switch (status) {
      case exit_status::callback_failed:
        return is_failing_ || processor_.has_given_up();
      case exit_status::protocol_error:
        return was_line_damaged_;
      case exit_status::daemon_gone:
      case exit_status::callback_stuck:
        return input_ended_ || daemon_gone_ || was_line_damaged_;
      case exit_status::start_failed:
      case exit_status::resource_failure:
      case exit_status::resident_gone:
        return false;
      case exit_status::ok:
      case exit_status::shard_end_failed:
        return true;
    }
    return false;
  }();
  if (!is_explained) throw violation("exit: nothing explains this status");
  child_is_gone();
}

void life::write_log(log_level, std::string text, const std::optional<sequence_position>&) {
  log_.note([&] { return "  log: " + text; });
}

void life::request_stop() {
  if (std::exchange(stop_fired_, true)) throw violation("stop: the stop token fired twice");
  stop_.request_stop();
}

void life::run_handler(checkpoint_handler handler, std::error_code result) {
  handlers_.emplace_back(std::move(handler), result);
}

std::size_t life::next_timer() const {
  std::size_t next = timers_.size();
  for (std::size_t i = 0; i < timers_.size(); ++i) {
    if (timers_[i] && (next == timers_.size() || *timers_[i] < *timers_[next])) next = i;
  }
  return next;
}

void life::fire_session_timer() {
  const std::size_t which = next_timer();
  now_ = std::max(now_, *timers_[which]);
  timers_[which].reset();
  feed([&] { driver_.on_timer(static_cast<session::timer>(which)); });
}

void life::child_is_gone() {
  child_gone_ = true;
  call_.reset();
  to_child_.clear();
}

}  // namespace kclxx::simulation

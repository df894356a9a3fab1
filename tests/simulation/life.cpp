// SPDX-License-Identifier: Apache-2.0
#include "simulation/life.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/printable.hpp"

namespace kclxx::simulation {

void life::find_choices() {
  possible_.clear();
  const auto may = [&](bool can, event what, unsigned weight) {
    if (can && weight > 0) possible_.push_back({what, weight});
  };
  const unsigned rare = with_faults_ ? 1 : 0;
  const auto& faults = world_.faults;
  const bool has_lease = !daemon_.is_gone() && !is_lease_lost();
  may(daemon_.can_call(), event::daemon_calls, 60);
  may(!daemon_.is_gone(), event::daemon_dies, rare * faults.daemon_death);
  may(daemon_.can_stop(), event::worker_stops, rare * faults.worker_stop);
  may(has_lease, event::lease_is_stolen, rare * faults.lease_stolen);
  const bool can_read = !child_has_seen_end_ && (!to_child_.empty() || input_ended_);
  may(!child_gone_ && can_read, event::child_reads, 60);
  may(!child_gone_, event::child_killed, rare * faults.crash);
  may(daemon_.can_read(), event::daemon_reads, 60);
  if (child_gone_) return;
  may(true, event::store_refuses, rare * faults.store_refuses);
  may(call_ && !is_in_user_code_, event::callback_begins, 60);
  may(processor_.can_step(), event::callback_steps, 60);
  may(processor_.is_in_callback(), event::callback_lasts, 5);
  may(processor_.can_step_elsewhere(), event::thread_steps, 20);
  may(!handlers_.empty(), event::handler_runs, 30);
  may(next_timer() < timers_.size(), event::session_timer_fires, 10);
  may(!is_in_user_code_ && shard_timers_.next_due(), event::shard_timer_fires, 10);
}

meetings& life::met() {
  static meetings all(
      {"the JVM dies", "the worker stops", "the lease is stolen", "the store refuses",
       "the child is killed", "shutdownRequested", "an unknown action", "a damaged line",
       "a checkpoint is refused", "a callback throws", "a timer throws",
       "a checkpoint handler throws"},
      {"no user code runs", "in initialize", "in process_records", "in lease_lost",
       "in shard_ended", "in shutdown_requested", "in a timer", "a checkpoint is unanswered",
       "a call of checkpoint() waits", "a handler is due", "the lease is lost",
       "the input has ended", "the processor has given up"});
  return all;
}

void life::note(fault what) const {
  const auto index = static_cast<std::size_t>(what);
  log_.note([&] { return met().fault(index); });
  const auto count = [&](std::size_t state) { met().count(index, state); };
  if (!is_in_user_code_) {
    count(0);
  } else {
    count(running_ ? 1 + static_cast<std::size_t>(*running_) : 6);
  }
  if (unanswered_ > 0) count(7);
  if ((waiting_ && !waiting_->second) || processor_.waits_elsewhere() > 0) count(8);
  if (!handlers_.empty()) count(9);
  if (is_lease_lost()) count(10);
  if (input_ended_) count(11);
  if (processor_.has_given_up()) count(12);
}

/// Whether it brings the dialogue on. Faults do not, and nor does what can happen at any time.
bool life::leads_on(const choice& one) const {
  constexpr auto report = static_cast<std::size_t>(session::timer::report);
  switch (one.what) {
    case event::thread_steps:
      return driver_.awaits_completion();
    case event::session_timer_fires:
      return next_timer() != report;
    case event::shard_timer_fires:
      return false;
    default:
      return one.weight >= 10;
  }
}

void life::take_step() {
  if (++steps_ > 20000) throw violation("end: the dialogue does not come to its end");
  now_ += std::chrono::milliseconds(random_.below(3));
  find_choices();
  unsigned sum = 0;
  for (const choice& one : possible_) sum += one.weight;
  if (std::none_of(possible_.begin(), possible_.end(),
                   [this](const choice& one) { return leads_on(one); })) {
    check_stuck();
  }
  if (is_over() || sum == 0) return;
  std::uint64_t chosen = random_.below(sum);
  for (const choice& one : possible_) {
    if (chosen < one.weight) return perform(one.what);
    chosen -= one.weight;
  }
}

void life::perform(event what) {
  switch (what) {
    case event::daemon_calls:
      return daemon_.call_something();
    case event::daemon_dies:
      note(fault::daemon_dies);
      return daemon_.die(random_.chance(30));
    case event::worker_stops:
      note(fault::worker_stops);
      return daemon_.stop_worker();
    case event::lease_is_stolen:
      note(fault::lease_is_stolen);
      return daemon_.lose_lease();
    case event::store_refuses:
      note(fault::store_refuses);
      return processor_.refuse();
    case event::child_reads:
      return child_reads();
    case event::child_killed:
      note(fault::child_is_killed);
      was_killed_ = true;
      return child_is_gone();
    case event::daemon_reads:
      return daemon_.read();
    case event::callback_begins:
      return run_callback();
    case event::callback_steps:
      return processor_.step();
    case event::callback_lasts:
      return feed([&] { driver_.on_callback_lasts(); });
    case event::thread_steps:
      return processor_.step_elsewhere();
    case event::handler_runs:
      return run_one_handler();
    case event::session_timer_fires:
      return fire_session_timer();
    case event::shard_timer_fires:
      return fire_shard_timer();
  }
}

void life::check_stuck() {
  if (wait_ends_) {
    now_ = std::max(now_, *wait_ends_);
    return;
  }
  // A callback that never returns is a stuck shard under a real daemon too, until it stops.
  if (!child_gone_ && processor_.hangs()) {
    if (input_ended_) throw violation("end: a hanging callback outlives the end of the input");
    log_.note([] { return std::string("the callback hangs; the JVM is halted"); });
    return daemon_.die(false);
  }
  throw violation("stuck: nothing can happen any more");
}

void life::check_end() {
  if (was_killed_) return;
  if (!driver_.status()) throw violation("end: the child is gone without a status");
  if (processor_.waits_elsewhere() > 0 || (waiting_ && !waiting_->second)) {
    throw violation("waiter: a waiting call was never completed");
  }
  while (!handlers_.empty()) run_one_handler();
  processor_.handlers().check_all_answered();
}

namespace {

/// Unwinds the user's code when its process is gone.
struct process_is_gone {};

[[noreturn]] void not_called() {
  throw violation("service: the processor calls what the simulation does not have");
}

}  // namespace

/// What the processor's checkpointer and context are handles of.
class life::service final : public detail::shard_service {
 public:
  explicit service(life& owner) : owner_(owner) {}

  void async_checkpoint(const optional_position& position, checkpoint_handler handler) override {
    owner_.async_checkpoint(position, std::move(handler));
  }
  std::error_code checkpoint(const optional_position& position,
                             const std::optional<clock::time_point>& deadline) override {
    return owner_.checkpoint(position, deadline);
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

  // The processor calls none of these.
  void wait_until_notified(clock::time_point) override { not_called(); }
  void notify() override { not_called(); }
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_thread_pool(std::size_t) override {
    not_called();
  }
  void fail(std::exception_ptr) override { not_called(); }
  void log(log_level, const std::string&, const std::optional<sequence_position>&) override {
    not_called();
  }

 private:
  life& owner_;
};

life::life(world& world, random_source& random, bool with_faults, trace& log, scheduler next)
    : world_(world),
      random_(random),
      with_faults_(with_faults),
      log_(log),
      next_(std::move(next)),
      daemon_(world, random, with_faults, log, *this),
      processor_(world, random, with_faults, *this),
      driver_(processor_.factory(), world.options, static_cast<std::uint32_t>(random.next()),
              *this) {
  service_ = std::make_shared<service>(*this);
  context_.stop_token = stop_.get_token();
}

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
      if (answer->error &&
          make_checkpoint_error_code(*answer->error) == checkpoint_condition::retryable) {
        last_checkpoint_.reset();
      }
    } else {
      may_write_ = true;
    }
  }
  feed([&] { driver_.on_line(std::move(line)); });
}

void life::next_event() {
  if (child_gone_) throw process_is_gone{};
  next_(*this);
  if (child_gone_) throw process_is_gone{};
}

void life::run_callback() {
  session::call call = *std::exchange(call_, std::nullopt);
  log_.note(
      [&] { return "  child: " + std::string(detail::callback_name(call.kind)) + " begins"; });
  is_in_user_code_ = true;
  running_ = call.kind;
  const auto result = driver_.run_callback(std::move(call), context_, service_);
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
      is_failing_ = is_failing_ || !result.failure->is_lease_gone;
    }
  }
  log_.note([&] {
    return "  child: the callback " + (result.failure ? result.failure->text : "returns");
  });
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
  feed([&] { driver_.on_user_code_threw(driver::describe("a timer", failure)); });
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
      feed([&] {
        driver_.on_user_code_threw(
            driver::describe("a checkpoint handler", std::current_exception()));
      });
    }
  }
}

void life::async_checkpoint(const optional_position& position, checkpoint_handler handler) {
  log_.note(
      [&] { return "  user: async_checkpoint " + (position ? to_string(*position) : "all"); });
  const bool from_callback = processor_.is_in_callback();
  feed([&] { driver_.on_async_checkpoint(position, std::move(handler), from_callback); });
}

std::error_code life::checkpoint(const optional_position& position,
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

void life::begin_wait(session::waiter_id id, const optional_position& position) {
  log_.note([&] { return "  thread: checkpoint " + (position ? to_string(*position) : "all"); });
  feed([&] { driver_.on_checkpoint(id, position, false); });
}

bool life::time_out(session::waiter_id id) {
  bool was_waiting = false;
  feed([&] { was_waiting = driver_.on_deadline(id); });
  return was_waiting;
}

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
  if (daemon_.is_gone()) return std::make_error_code(std::errc::broken_pipe);
  return {};
}

void life::write_line(const std::string& line) {
  if (!line.empty()) {
    log_.note([&] { return "  child: " + line; });
    if (!may_write_) throw violation("order: the child writes while no action is open: " + line);
    if (line.find("\"checkpoint\"") != std::string::npos) {
      if (++unanswered_ > 1) throw violation("order: two checkpoints are unanswered");
      const bool is_paced = daemon_.waits_for(protocol::action_kind::process_records) &&
                            !is_failing_ && processor_.open_waits() == 0;
      if (is_paced && last_checkpoint_ &&
          now_ - *last_checkpoint_ < world_.options.checkpoint_interval) {
        throw violation("pace: nobody waits for " + line);
      }
      last_checkpoint_ = now_;
    } else {
      may_write_ = false;
    }
  }
  daemon_.receive(line);
}

void life::arm(session::timer which, std::chrono::milliseconds after) {
  expect_alive("a timer");
  if (which == session::timer::report && processor_.has_requested_all()) {
    throw violation("end: it waits, and checkpoints of all records were requested");
  }
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
        return input_ended_ || daemon_.is_gone() || was_line_damaged_;
      case exit_status::start_failed:
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

void life::close_child_input(bool unfinished_line) {
  input_ended_ = true;
  unfinished_line_ = unfinished_line;
}

void life::persisted(const sequence_position& position) {
  world_.persist(position, processor_.complete(), processor_.may_finish());
}

}  // namespace kclxx::simulation

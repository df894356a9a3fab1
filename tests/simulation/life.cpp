// SPDX-License-Identifier: Apache-2.0
// One life: which event comes next. The two sides of the dialogue are in life_daemon.cpp and
// life_child.cpp.
#include "simulation/life.hpp"

#include <algorithm>

namespace kclxx::simulation {

void life::find_choices() {
  possible_.clear();
  const auto may = [&](bool can, event what, unsigned weight) {
    if (can && weight > 0) possible_.push_back({what, weight});
  };
  const unsigned rare = with_faults_ ? 1 : 0;
  const auto& faults = world_.faults;
  may(!daemon_gone_ && !consumer_.is_closed() && !consumer_.is_waiting(), event::daemon_calls, 60);
  may(!daemon_gone_, event::daemon_dies, rare * faults.daemon_death);
  may(!daemon_gone_ && !consumer_.is_closed(), event::worker_stops, rare * faults.worker_stop);
  may(!daemon_gone_ && !lease_.is_lost(), event::lease_is_stolen, rare * faults.lease_stolen);
  may(!daemon_gone_ && !lease_.is_lost(), event::store_is_taken, rare * faults.store_taken);
  const bool can_read =
      !child_has_seen_end_ && (to_child_.empty() ? input_ended_ : !driver_.is_reading_paused());
  may(!child_gone_ && can_read, event::child_reads, 60);
  may(!child_gone_, event::child_killed, rare * faults.crash);
  may(!daemon_gone_ && (!to_daemon_.empty() || (child_gone_ && !daemon_has_seen_end_)),
      event::daemon_reads, 60);
  if (child_gone_) return;
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
      {"the JVM dies", "the worker stops", "the lease is stolen",
       "another application takes the store", "the child is killed", "shutdownRequested",
       "an unknown action", "a damaged line", "a checkpoint is refused", "a callback throws",
       "a timer throws", "a checkpoint handler throws"},
      {"no user code runs", "in initialize", "in process_records", "in lease_lost",
       "in shard_ended", "in shutdown_requested", "in a timer", "a checkpoint is unanswered",
       "a call of checkpoint() waits", "a handler is due", "the lease is lost",
       "the input has ended", "the processor has given up"});
  return all;
}

void life::note(fault what) const {
  const auto count = [&](std::size_t state) { met().count(static_cast<std::size_t>(what), state); };
  if (!is_in_user_code_) {
    count(0);
  } else {
    count(running_ ? 1 + static_cast<std::size_t>(*running_) : 6);
  }
  if (unanswered_ > 0) count(7);
  if ((waiting_ && !waiting_->second) || processor_.waits_elsewhere() > 0) count(8);
  if (!handlers_.empty()) count(9);
  if (lease_.is_lost()) count(10);
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
      return call_something();
    case event::daemon_dies:
      log_.note([] { return std::string("the JVM dies"); });
      note(fault::daemon_dies);
      daemon_gone_ = true;
      return end_child_input(random_.chance(30));
    case event::worker_stops: {
      log_.note([] { return std::string("the worker stops"); });
      note(fault::worker_stops);
      daemon_model::daemon_events happened;
      consumer_.close(happened);
      return take(happened);
    }
    case event::lease_is_stolen:
      log_.note([] { return std::string("the lease is stolen"); });
      note(fault::lease_is_stolen);
      return lease_.lose();
    case event::store_is_taken:
      log_.note([] { return std::string("another application takes the store"); });
      note(fault::store_is_taken);
      world_.store->take_over();
      return;
    case event::child_reads:
      return child_reads();
    case event::child_killed:
      log_.note([] { return std::string("the child is killed"); });
      note(fault::child_is_killed);
      was_killed_ = true;
      return child_is_gone();
    case event::daemon_reads:
      return to_daemon_.empty() ? daemon_sees_end() : daemon_reads();
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
    daemon_gone_ = true;
    return end_child_input(false);
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
  processor_.check_handlers();
}

}  // namespace kclxx::simulation

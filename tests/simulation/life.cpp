// SPDX-License-Identifier: Apache-2.0
// One life: which event comes next. The two sides of the dialogue stand in life_sides.cpp.
#include "simulation/life.hpp"

#include <utility>

namespace kclxx::simulation {

life::life(world& in, random_source& random, bool with_faults, journal& log)
    : world_(in),
      random_(random),
      with_faults_(with_faults),
      log_(log),
      lease_(in.persisted),
      consumer_(daemon_model::generation::v3, lease_),
      delivered_(in.resume_index()),
      session_(in.options, false, static_cast<std::uint32_t>(random.next())),
      processor_(
          in, random, with_faults,
          {[this](auto id, auto position, bool from_callback) {
             feed([&](auto& out) {
               session_.on_checkpoint(id, position, from_callback, now_, out);
             });
           },
           [this](auto id) {
             bool was_waiting = false;
             feed([&](auto& out) { was_waiting = session_.on_deadline(id, now_, out); });
             return was_waiting;
           },
           [this](auto position, bool from_callback) {
             // Whether it goes out at once hangs on who reads; both must be right.
             if (from_callback && random_.chance(70)) {
               return session_.on_request_for_later(position);
             }
             std::error_code ec;
             feed([&](auto& out) { ec = session_.on_request(position, now_, out); });
             return ec;
           },
           [this] { feed([&](auto& out) { session_.on_callback_returned(now_, out); }); },
           [this] { feed([&](auto& out) { session_.on_callback_threw("oops", now_, out); }); }}) {
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

std::vector<life::choice> life::choices() const {
  std::vector<choice> result;
  const auto may = [&](bool can, event what, unsigned weight) {
    if (can && weight > 0) result.push_back({what, weight});
  };
  const unsigned rare = with_faults_ ? 1 : 0;
  const auto& faults = world_.faults;
  may(!daemon_gone_ && !consumer_.is_closed() && !consumer_.is_waiting(), event::daemon_calls, 60);
  may(!daemon_gone_, event::daemon_dies, rare * faults.daemon_death);
  may(!daemon_gone_ && !consumer_.is_closed(), event::worker_stops, rare * faults.worker_stop);
  may(!daemon_gone_ && !lease_.is_lost(), event::lease_is_stolen, rare * faults.lease_stolen);
  may(!child_gone_ && !is_paused_ && !child_has_seen_end_ && (!to_child_.empty() || input_ended_),
      event::child_reads, 60);
  may(!child_gone_, event::child_killed, rare * faults.crash);
  may(!daemon_gone_ && (!to_daemon_.empty() || (child_gone_ && !daemon_has_seen_end_)),
      event::daemon_reads, 60);
  may(!child_gone_ && processor_.can_step(), event::callback_steps, 60);
  may(!child_gone_ && processor_.is_in_callback(), event::callback_lasts, 5);
  may(!child_gone_ && processor_.can_step_elsewhere(), event::thread_steps, 20);
  may(!child_gone_ && (timers_[0] || timers_[1]), event::timer_fires, 10);
  return result;
}

void life::run() {
  while (!is_over()) {
    if (++steps_ > 20000) throw violation("end: the dialogue does not come to its end");
    now_ += std::chrono::milliseconds(random_.below(3));
    const std::vector<choice> possible = choices();
    unsigned sum = 0;
    bool goes_on = false;
    for (const choice& one : possible) {
      sum += one.weight;
      // Events of less weight are faults, or lead nowhere by themselves.
      goes_on = goes_on || (one.what != event::thread_steps && one.weight >= 10);
    }
    if (!goes_on) check_stuck();
    if (is_over() || sum == 0) continue;
    std::uint64_t chosen = random_.below(sum);
    for (const choice& one : possible) {
      if (chosen < one.weight) {
        perform(one.what);
        break;
      }
      chosen -= one.weight;
    }
  }
  check_end();
}

void life::perform(event what) {
  switch (what) {
    case event::daemon_calls:
      return call_something();
    case event::daemon_dies:
      log_.note([] { return std::string("the JVM dies"); });
      daemon_gone_ = true;
      return end_child_input(random_.chance(30));
    case event::worker_stops: {
      log_.note([] { return std::string("the worker stops"); });
      daemon_model::happenings happened;
      consumer_.close(happened);
      return take(happened);
    }
    case event::lease_is_stolen:
      log_.note([] { return std::string("the lease is stolen"); });
      return lease_.lose();
    case event::child_reads:
      return child_reads();
    case event::child_killed:
      log_.note([] { return std::string("the child is killed"); });
      was_killed_ = true;
      return child_is_gone();
    case event::daemon_reads:
      return to_daemon_.empty() ? daemon_sees_end() : daemon_reads();
    case event::callback_steps:
      return processor_.step();
    case event::callback_lasts:
      return feed([&](auto& out) { session_.on_callback_lasts(now_, out); });
    case event::thread_steps:
      return processor_.step_elsewhere();
    case event::timer_fires:
      return fire_timer();
  }
}

void life::check_stuck() {
  // A callback that never returns is a stuck shard under a real daemon too, until it stops.
  if (!child_gone_ && processor_.hangs()) {
    if (input_ended_) throw violation("end: a hanging callback outlives the end of the input");
    log_.note([] { return std::string("the callback hangs; the JVM is halted"); });
    daemon_gone_ = true;
    return end_child_input(false);
  }
  throw violation("stuck: nothing can happen any more");
}

void life::check_end() const {
  if (was_killed_) return;
  if (!left_with_) throw violation("end: the child is gone without a status");
  if (processor_.open_waits() > 0) throw violation("waiter: a waiting call was never completed");
}

}  // namespace kclxx::simulation

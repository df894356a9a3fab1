// SPDX-License-Identifier: Apache-2.0
#include "simulation/processor.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <kclxx/error.hpp>

#include "simulation/life.hpp"

namespace kclxx::simulation {

using protocol::action_kind;
using std::chrono::milliseconds;

/// What the library calls.
class processor::callbacks final : public record_processor {
 public:
  explicit callbacks(processor& owner) : owner_(owner) { owner_.run(action_kind::initialize, {}); }

  [[nodiscard]] checkpoint_mode mode() const override { return owner_.world_.mode; }
  void process_records(record_batch batch, const checkpointer&) override {
    owner_.run(action_kind::process_records, batch);
  }
  void lease_lost() override { owner_.run(action_kind::lease_lost, {}); }
  void shard_ended(const checkpointer&) override { owner_.run(action_kind::shard_ended, {}); }
  void shutdown_requested(const checkpointer&) override {
    owner_.run(action_kind::shutdown_requested, {});
  }

 private:
  processor& owner_;
};

processor::processor(world& world, random_source& random, bool with_faults, life& owner)
    : world_(world),
      random_(random),
      with_faults_(with_faults),
      life_(owner),
      done_(world.resume_index()),
      asked_(done_),
      delivered_(done_),
      returned_(done_) {}

processor_factory processor::factory() {
  return [this](const shard_context& context) {
    context_ = &context;
    return std::make_unique<callbacks>(*this);
  };
}

void processor::run(action_kind what, const record_batch& batch) {
  if (running_ || is_in_timer_) {
    throw violation("overlap: a callback began while another, or a timer, was running");
  }
  if (has_given_up_ && what != action_kind::lease_lost) {
    throw violation("fence: a callback was called after one gave the shard up");
  }
  running_ = what;
  ending_.reset();
  hangs_ = with_faults_ && random_.chance(world_.faults.callback_hangs);
  heeds_stop_ = random_.chance(50);
  for (const record& one : batch) {
    if (delivered_ == world_.records.size() || one.position() != world_.records[delivered_]) {
      throw violation("delivery: " + to_string(one.position()) + " came out of order");
    }
    ++delivered_;
  }
  while (!ending_) life_.next_event();
  hangs_ = false;
  running_.reset();
  if (*ending_ == ending::throws) throw std::runtime_error("oops");
  if (*ending_ == ending::lease_gone) {
    has_given_up_ = true;
    throw std::system_error(random_.chance(50) ? errc::lease_lost : errc::fenced);
  }
  returned_ = delivered_;
  if (what == action_kind::shard_ended) may_finish_ = true;
}

bool processor::must_finish_first() const {
  if (!running_) return false;
  switch (*running_) {
    case action_kind::process_records:
    case action_kind::shard_ended:
      return !is_manual();
    case action_kind::shutdown_requested:
      return !with_faults_;  // so that the last life ends with everything persisted
    case action_kind::initialize:
    case action_kind::lease_lost:
      return false;
  }
  return false;
}

bool processor::can_step() const {
  return running_ && !waits_ && !ending_ &&
         (!hangs_ || (context_->stop_token().stop_requested() && heeds_stop_));
}

void processor::step() {
  try {
    take_step();
  } catch (const fenced_error&) {
    end_callback(ending::lease_gone);
  }
}

void processor::take_step() {
  if (hangs_) return end_callback(ending::returns);
  if (with_faults_ && random_.chance(world_.faults.callback_throws)) {
    return end_callback(ending::throws);
  }
  if (with_faults_ && life_.is_lease_lost() && random_.chance(10)) {  // a fence reported it
    return end_callback(ending::lease_gone);
  }
  const bool has_work = done_ < delivered_;
  switch (random_.below(9)) {
    case 0:
      return checkpoint_something();
    case 1:
      return wait_in_callback();
    case 2:
      if (random_.chance(30)) return use_timers();
      [[fallthrough]];
    case 3:
    case 4:
      if (has_work && must_finish_first()) return finish_next();
      return end_callback(ending::returns);
    default:
      if (has_work) return finish_next();
      return end_callback(ending::returns);
  }
}

void processor::end_callback(ending kind) {
  if (kind == ending::returns && must_finish_first()) {
    while (done_ < delivered_) finish_next();
    if (is_manual() && !with_faults_) async_checkpoint(std::nullopt);
  }
  ending_ = kind;
}

void processor::use_timers() {
  if (!timers_.empty() && random_.chance(40)) {
    context_->cancel(timers_.begin()->second);
    timers_.erase(timers_.begin());
    return;
  }
  if (timers_.size() > 3) return;
  const milliseconds time(1 + random_.below(300));
  const std::size_t number = timers_started_++;
  const bool is_periodic = random_.chance(40);
  const auto function = [this, number, is_periodic] { run_timer(number, is_periodic); };
  timers_[number] = is_periodic ? context_->every(time, function) : context_->after(time, function);
}

void processor::run_timer(std::size_t number, bool is_periodic) {
  if (running_ || is_in_timer_) {
    throw violation("overlap: a timer ran while another, or a callback, was running");
  }
  if (timers_.count(number) == 0) throw violation("timer: one that has ended was called");
  if (!is_periodic) timers_.erase(number);
  if (has_given_up_) throw violation("fence: a timer fired after the shard was given up");
  is_in_timer_ = true;
  const bool throws = with_faults_ && random_.chance(world_.faults.callback_throws);
  switch (random_.below(5)) {
    case 0:  // one that lasts: the next call may arrive, but does not begin
      context_->sleep_for(milliseconds(random_.below(20)));
      checkpoint_something();
      break;
    case 1:
      use_timers();
      break;
    case 2:
      try {
        if (is_manual() && done_ < returned_) finish_next();
      } catch (const fenced_error&) {
        is_in_timer_ = false;
        has_given_up_ = true;
        throw;
      }
      break;
    default:
      checkpoint_something();
  }
  is_in_timer_ = false;
  if (throws) throw std::runtime_error("oops, a timer");
}

/// The other thread has no other way to report it.
void processor::report_fenced() {
  if (std::exchange(has_reported_, true)) return;
  context_->after(milliseconds(0), [this] {
    if (has_given_up_) throw violation("fence: a timer fired after the shard was given up");
    has_given_up_ = true;
    throw fenced_error("on another thread");
  });
}

void processor::finish_next() {
  if (is_refused_) throw fenced_error("the store refuses it");
  if (world_.store) return commit_some();
  world_.was_processed[done_] = true;
  ++done_;
}

/// The recipe of docs/exactly-once.md. Others may have a turn between begin and commit.
void processor::commit_some() {
  auto& store = *world_.store;
  if (!transaction_) transaction_ = store.begin(random_);
  if (!transaction_ || random_.chance(50)) return;
  const auto mine = *std::exchange(transaction_, std::nullopt);
  const std::size_t end = std::min(delivered_, done_ + 1 + random_.below(3));
  const std::size_t first = store.how().leaves_out ? std::max(done_, mine.position) : done_;
  const bool is_committed = store.commit(mine, first, std::max(first, end));
  if (!is_committed || (with_faults_ && random_.chance(3))) return;  // or its answer was lost
  while (done_ < end) world_.was_processed[done_++] = true;
}

processor::optional_position processor::before(std::size_t index) const {
  return index > 0 ? optional_position(world_.records[index - 1]) : std::nullopt;
}

processor::optional_position processor::some_done_position() {
  if (may_ask_for_everything() && random_.chance(40)) return std::nullopt;
  if (done_ == 0) return std::nullopt;
  return world_.records[done_ - 1 - std::min<std::size_t>(done_ - 1, random_.below(4))];
}

/// From here on it may be checkpointed.
void processor::ask(const optional_position& position) {
  const auto end = [&] {
    return static_cast<std::size_t>(
        std::upper_bound(world_.records.begin(), world_.records.end(), *position) -
        world_.records.begin());
  };
  const std::size_t asked = position ? end() : everything();
  if (asked <= delivered_) asked_ = std::max(asked_, asked);
}

void processor::async_checkpoint(const optional_position& position) {
  ask(position);
  const checkpointer checkpointer =
      detail::service_access::handle_of<kclxx::checkpointer>(detail::service_access::of(*context_));
  const checkpoint_target target = position ? checkpoint_target(*position) : checkpoint_target();
  if (random_.chance(30)) return checkpointer.async_checkpoint(target);
  const std::size_t number = requests_.add(position ? position : before(everything()));
  checkpointer.async_checkpoint(
      target, [this, number](std::error_code result) { handler_called(number, result); });
}

void processor::checkpoint_something() {
  if (random_.chance(3) && life_.sent() < world_.records.size()) {
    return async_checkpoint(
        world_.records.back());  // which was not delivered: its handler gets an error
  }
  const auto position = some_done_position();
  if (!position && !may_ask_for_everything()) return;
  async_checkpoint(position);
}

void processor::handler_called(std::size_t number, std::error_code result) {
  requests_.answer(number, result, world_.persisted);
  if (!with_faults_) return;
  if (random_.chance(10)) {
    const auto callback = std::exchange(running_, std::nullopt);  // on another thread
    checkpoint_something();
    running_ = callback;
  }
  if (random_.chance(world_.faults.handler_throws)) throw std::runtime_error("oops, a handler");
}

void processor::note_end(const optional_position& target, bool has_position) {
  // To wait for the last position is to be done with the shard, as its documentation states.
  const bool is_at_end = running_ == action_kind::shard_ended && !has_position;
  if (is_at_end || (target && target == world_.records.back())) may_finish_ = true;
}

void processor::wait_in_callback() {
  const auto position = some_done_position();
  if (!position && !may_ask_for_everything()) return;
  const auto target = position ? position : before(everything());
  ask(position);
  note_end(target, position.has_value());
  waits_ = true;
  std::error_code result;
  const checkpointer checkpointer =
      detail::service_access::handle_of<kclxx::checkpointer>(detail::service_access::of(*context_));
  const checkpoint_target what = position ? checkpoint_target(*position) : checkpoint_target();
  if (random_.chance(30)) {
    checkpointer.checkpoint_until(what, context_->now() + milliseconds(random_.below(2000)),
                                  result);
  } else {
    checkpointer.checkpoint(what, result);
  }
  waits_ = false;
  requests::check(target, result, world_.persisted);
  // What a user does with the exception of checkpoint(): often nothing, so it leaves the callback.
  if (running_ && with_faults_ && result && random_.chance(30)) {
    end_callback(result == checkpoint_condition::lease_gone ? ending::lease_gone : ending::throws);
  }
}

bool processor::can_step_elsewhere() const {
  return context_ != nullptr && delivered_ > 0 && (is_manual() || random_.chance(20));
}

void processor::step_elsewhere() {
  // A callback that runs is not on this thread.
  const auto callback = std::exchange(running_, std::nullopt);
  switch (random_.below(5)) {
    case 0:
      checkpoint_something();
      break;
    case 1: {
      const auto position = some_done_position();
      if ((!position && !may_ask_for_everything()) || elsewhere_.size() > 3) break;
      const auto target = position ? position : before(everything());
      const auto id = life_.new_waiter();
      ask(position);
      note_end(target, position.has_value());
      elsewhere_.emplace(id, wait{target, random_.chance(50)});
      life_.begin_wait(id, position);
      break;
    }
    case 2: {
      const auto expiring = std::find_if(elsewhere_.begin(), elsewhere_.end(),
                                         [](const auto& one) { return one.second.has_deadline; });
      if (expiring == elsewhere_.end()) break;
      const auto id = expiring->first;
      elsewhere_.erase(expiring);
      if (!life_.time_out(id)) throw violation("waiter: a completed call was not woken");
      break;
    }
    default:
      try {
        if (is_manual() && done_ < delivered_) finish_next();
      } catch (const fenced_error&) {
        report_fenced();
      }
  }
  running_ = callback;
}

void processor::woken(session::waiter_id id, std::error_code result) {
  const auto found = elsewhere_.find(id);
  if (found == elsewhere_.end()) throw violation("waiter: a waiting call was completed twice");
  requests::check(found->second.target, result, world_.persisted);
  elsewhere_.erase(found);
}

}  // namespace kclxx::simulation

// SPDX-License-Identifier: Apache-2.0
#include "simulation/processor.hpp"

#include <algorithm>
#include <utility>

#include <kclxx/error.hpp>

namespace kclxx::simulation {

using session::callback;

processor::processor(world& in, random_source& random, bool with_faults, port to)
    : world_(in),
      random_(random),
      with_faults_(with_faults),
      port_(std::move(to)),
      done_(in.resume_index()),
      delivered_(done_) {}

void processor::begin(const session::call& call) {
  if (running_) throw violation("overlap: a callback began while another was running");
  running_ = call.what;
  hangs_ = with_faults_ && random_.chance(world_.faults.callback_hangs);
  heeds_stop_ = random_.chance(50);
  for (const record& one : call.batch) {
    if (delivered_ == world_.records.size() || one.position() != world_.records[delivered_]) {
      throw violation("delivery: " + to_string(one.position()) + " came out of order");
    }
    ++delivered_;
  }
}

void processor::completed(const session::complete& result) {
  if (result.waiter == callback_wait_) {
    callback_wait_ = 0;
    // What a user does with the exception of checkpoint(): often nothing, so it leaves the
    // callback.
    will_throw_ = with_faults_ && result.result && random_.chance(30);
    return;
  }
  if (elsewhere_.erase(result.waiter) == 0) {
    throw violation("waiter: a waiting call was completed twice");
  }
}

bool processor::must_finish_first() const {
  if (!running_) return false;
  switch (*running_) {
    case callback::process_records:
      return !by_request();
    case callback::shard_ended:
      return true;
    case callback::shutdown_requested:
      return !with_faults_;  // so that the last life ends with everything persisted
    case callback::initialize:
    case callback::lease_lost:
      return false;
  }
  return false;
}

bool processor::can_step() const {
  return running_ && callback_wait_ == 0 && (!hangs_ || (stop_requested_ && heeds_stop_));
}

void processor::finish_next() {
  world_.was_processed[done_] = true;
  ++done_;
}

std::optional<sequence_position> processor::some_done_position() {
  if (done_ == delivered_ && random_.chance(40)) return std::nullopt;  // everything delivered
  if (done_ == 0) return std::nullopt;
  const std::size_t back = std::min<std::size_t>(done_ - 1, random_.below(4));
  return world_.records[done_ - 1 - back];
}

void processor::request_something(bool from_callback) {
  if (random_.chance(3) && delivered_ < world_.records.size()) {
    const auto ec = port_.request(world_.records.back(), from_callback);
    if (!ec) throw violation("range: a request beyond what was delivered was taken");
    return;
  }
  const auto position = some_done_position();
  if (!position && done_ < delivered_) return;
  (void)port_.request(position, from_callback);
}

void processor::note_end(const std::optional<sequence_position>& position) {
  // To wait for the last position is to be done with the shard, as its documentation says.
  if (!position || position == world_.records.back()) may_finish_ = true;
}

void processor::wait_in_callback() {
  const auto position = some_done_position();
  if (!position && done_ < delivered_) return;
  note_end(position);
  callback_wait_ = next_waiter_++;
  port_.wait(callback_wait_, position, true);
}

void processor::step() {
  if (will_throw_) return end_callback(true);
  if (hangs_) return end_callback(false);
  if (with_faults_ && random_.chance(world_.faults.callback_throws)) return end_callback(true);
  const bool has_work = done_ < delivered_;
  switch (random_.below(8)) {
    case 0:
      return request_something(true);
    case 1:
      return wait_in_callback();
    case 2:
    case 3:
      if (has_work && must_finish_first()) return finish_next();
      return end_callback(false);
    default:
      if (has_work) return finish_next();
      return end_callback(false);
  }
}

void processor::end_callback(bool throws) {
  if (!throws && must_finish_first()) {
    while (done_ < delivered_) finish_next();
    if (by_request() && !with_faults_) (void)port_.request(std::nullopt, true);
  }
  const callback was = *std::exchange(running_, std::nullopt);
  hangs_ = will_throw_ = false;
  if (throws) return port_.threw();
  if (was == callback::shard_ended) may_finish_ = true;
  port_.returned();
}

bool processor::can_step_elsewhere() const {
  return delivered_ > 0 && (by_request() || random_.chance(20));
}

void processor::step_elsewhere() {
  const bool has_work = by_request() && done_ < delivered_;
  switch (random_.below(5)) {
    case 0:
      return request_something(false);
    case 1: {
      const auto position = some_done_position();
      if (!position || elsewhere_.size() > 3) return;  // "everything" is for the callback's thread
      const auto id = next_waiter_++;
      note_end(position);
      elsewhere_.emplace(id, random_.chance(50));
      return port_.wait(id, position, false);
    }
    case 2: {
      const auto expiring = std::find_if(elsewhere_.begin(), elsewhere_.end(),
                                         [](const auto& one) { return one.second; });
      if (expiring == elsewhere_.end()) return;
      const auto id = expiring->first;
      elsewhere_.erase(expiring);
      if (!port_.deadline(id)) throw violation("waiter: a completed call was not told so");
      return;
    }
    default:
      if (has_work) finish_next();
  }
}

}  // namespace kclxx::simulation

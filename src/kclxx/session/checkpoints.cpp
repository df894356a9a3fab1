// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoints.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace kclxx::session {

namespace {

const sequence_position& shard_end() {
  static const sequence_position position("SHARD_END");
  return position;
}

std::string describe(const sequence_position& position) {
  return position == shard_end() ? std::string("the end of the shard") : to_string(position);
}

}  // namespace

void checkpoints::start(const std::optional<sequence_position>& position) {
  if (position && position->is_number()) persisted_ = position;
}

void checkpoints::make_shard_end_pending() { raise(pending_, shard_end()); }

bool checkpoints::is_shard_finished() const { return persisted_ == shard_end(); }

std::error_code checkpoints::check(const sequence_position& position) const {
  if (!position.is_number()) return errc::invalid_position;
  // Beyond a Java long no record has it, and the daemon would drop the line without an answer.
  const bool is_representable =
      position.sub_sequence_number() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!is_representable || (position > delivered_ && position > persisted_)) {
    return errc::position_out_of_range;
  }
  return {};
}

std::error_code checkpoints::request(const optional_position& position) {
  if (position) {
    if (const std::error_code ec = check(*position)) return ec;
  }
  const optional_position target = position ? position : delivered_;
  raise(complete_, target);
  raise(pending_, target);
  return {};
}

void checkpoints::wait(waiter_id id, const optional_position& position, bool at_shard_end,
                       actions& out) {
  if (lease_gone_) {
    out.push_back(session::complete{id, errc::lease_lost, {}});
    return;
  }
  optional_position target = position;
  if (position) {
    if (const std::error_code ec = check(*position)) {
      out.push_back(session::complete{id, ec, {}});
      return;
    }
  } else {
    target = at_shard_end ? shard_end() : delivered_;
  }
  if (!target || target <= persisted_) {
    out.push_back(session::complete{id, {}, {}});
    return;
  }
  if (*target != shard_end()) raise(complete_, target);
  waiters_.push_back({id, *target});
}

bool checkpoints::abandon(waiter_id id) {
  const auto found = std::find_if(waiters_.begin(), waiters_.end(),
                                  [&](const waiter& one) { return one.id == id; });
  if (found == waiters_.end()) return false;
  // An abandoned SHARD_END is not kept: shard_ended's return makes it pending by itself.
  if (found->target != shard_end()) raise(pending_, found->target);
  waiters_.erase(found);
  return true;
}

template <class Predicate>
void checkpoints::complete_if(Predicate chosen, std::error_code result, const std::string& name,
                              actions& out) {
  const auto first = std::stable_partition(waiters_.begin(), waiters_.end(),
                                           [&](const waiter& one) { return !chosen(one); });
  for (auto it = first; it != waiters_.end(); ++it)
    out.push_back(session::complete{it->id, result, name});
  waiters_.erase(first, waiters_.end());
}

void checkpoints::fail_waiters(std::error_code why, const std::string& name, actions& out) {
  complete_if([](const waiter&) { return true; }, why, name, out);
}

checkpoints::optional_position checkpoints::wanted(bool for_waiters_only) const {
  optional_position highest = for_waiters_only ? std::nullopt : pending_;
  for (const waiter& one : waiters_) raise(highest, one.target);
  return highest > persisted_ ? highest : std::nullopt;
}

checkpoints::optional_position checkpoints::next(time_point now, bool for_waiters_only) const {
  if (in_flight_ || lease_gone_ || now < not_before_) return std::nullopt;
  return wanted(for_waiters_only);
}

bool checkpoints::has_more_than_in_flight(time_point now) const {
  return !lease_gone_ && now >= not_before_ && wanted(false) > in_flight_;
}

std::chrono::milliseconds checkpoints::next_backoff() {
  backoff_ = std::clamp(2 * backoff_, retry_.initial_backoff,
                        std::max(retry_.initial_backoff, retry_.max_backoff));
  // Jitter over the upper half, so that the shards of a host do not come back at the same time.
  std::uniform_int_distribution<std::chrono::milliseconds::rep> jitter(backoff_.count() / 2,
                                                                       backoff_.count());
  return std::chrono::milliseconds(jitter(random_));
}

checkpoints::outcome checkpoints::answered(const std::optional<std::string>& error, time_point now,
                                           const std::optional<time_point>& last_retry,
                                           actions& out) {
  const sequence_position position = *std::exchange(in_flight_, std::nullopt);
  const auto covered = [&](const waiter& one) { return one.target <= position; };
  if (!error) {
    raise(persisted_, position);
    backoff_ = {};
    not_before_ = time_point::min();
    complete_if(covered, {}, {}, out);
    return outcome::persisted;
  }
  const std::error_code code = make_checkpoint_error_code(*error);
  const std::string what = "the checkpoint at " + describe(position) + " failed: " + *error;
  if (code == checkpoint_errc::shutdown) {
    out.push_back(log_line{log_level::warning, what + "; this worker no longer holds the lease"});
    lose_lease(code, *error, out);
    return outcome::lease_gone;
  }
  if (is_retryable(code)) {
    const auto after = next_backoff();
    not_before_ = now + after;
    const bool too_late = last_retry && not_before_ > *last_retry;
    for (waiter& one : waiters_) one.attempts += covered(one) ? 1 : 0;
    complete_if(
        [&](const waiter& one) {
          return covered(one) && (too_late || one.attempts >= retry_.max_attempts);
        },
        code, *error, out);
    // Said when somebody still wants it: whoever waited and gave up has the error itself.
    const std::string retry = "; trying again after " + std::to_string(after.count()) + " ms";
    out.push_back(log_line{log_level::warning, !too_late && wanted(false) ? what + retry : what});
    out.push_back(arm_timer{timer::retry, after});
    return outcome::retry_later;
  }
  out.push_back(log_line{log_level::error, what});
  if (pending_ <= position) pending_.reset();
  complete_if(covered, code, *error, out);
  return outcome::refused;
}

void checkpoints::not_answered(errc why, actions& out) {
  if (!in_flight_) return;
  const sequence_position position = *std::exchange(in_flight_, std::nullopt);
  out.push_back(log_line{log_level::warning,
                         "the daemon did not answer the checkpoint at " + describe(position)});
  complete_if([&](const waiter& one) { return one.target <= position; }, why, {}, out);
}

void checkpoints::lose_lease(std::error_code why, const std::string& name, actions& out) {
  lease_gone_ = true;
  pending_.reset();
  in_flight_.reset();
  fail_waiters(why, name, out);
}

}  // namespace kclxx::session

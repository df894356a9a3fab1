// SPDX-License-Identifier: Apache-2.0
#include "session/checkpoints.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <utility>

#include "base/duration.hpp"
#include "base/invariant.hpp"
#include "base/printable.hpp"

namespace kclxx::session {

namespace {

const sequence_position& shard_end_position() {
  static const sequence_position position("SHARD_END");
  return position;
}

std::string describe(const sequence_position& position) {
  return position == shard_end_position() ? std::string("the end of the shard")
                                          : to_string(position);
}

}  // namespace

void checkpoints::start(const std::optional<sequence_position>& position) {
  if (position && position->is_number()) persisted_ = position;
}

void checkpoints::make_shard_end_pending() { raise(pending_, shard_end_position()); }

bool checkpoints::is_shard_finished() const { return persisted_ == shard_end_position(); }

bool checkpoints::covers_nothing(const sequence_position& position) {
  static const sequence_position first("TRIM_HORIZON");
  return position == first;
}

std::error_code checkpoints::check(const sequence_position& position) const {
  if (covers_nothing(position)) return {};
  if (!position.is_number()) return errc::invalid_position;
  // The daemon's type has 63 bits: it would drop a line with a higher number, without an answer.
  const bool is_representable =
      position.sub_sequence_number() <= std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!is_representable || (position > delivered_ && position > persisted_)) {
    return errc::position_out_of_range;
  }
  return {};
}

const checkpoints::optional_position& checkpoints::everything(bool from_callback) const noexcept {
  return from_callback ? delivered_ : returned_;
}

checkpoints::optional_position checkpoints::target_of(const optional_position& position,
                                                      const optional_position& otherwise,
                                                      std::error_code& ec) const {
  if (!has_lease()) {
    ec = errc::lease_lost;
  } else if (position) {
    ec = check(*position);
  }
  const optional_position& target = position ? position : otherwise;
  if (ec || !target || covers_nothing(*target) || target <= persisted_) return std::nullopt;
  return target;
}

void checkpoints::checkpoint(waiter_id id, const optional_position& position, bool from_callback,
                             bool at_shard_end, outputs& out) {
  std::error_code ec;
  const auto target =
      target_of(position, at_shard_end ? shard_end_position() : everything(from_callback), ec);
  if (!target) return out.push_back(notify_waiter{id, ec});
  // A request reports completion, whatever its target and its outcome (P64).
  raise(complete_, *target == shard_end_position() ? delivered_ : target);
  calls_.push_back({id, *target});
}

void checkpoints::async_checkpoint(const std::optional<waiter_id>& id,
                                   const optional_position& position, bool from_callback,
                                   outputs& out) {
  std::error_code ec;
  const auto target = target_of(position, everything(from_callback), ec);
  if (!target) {
    if (id) out.push_back(notify_waiter{*id, ec});
    if (!id && ec && has_lease()) {
      out.push_back(log_line{
          log_level::error,
          "the checkpoint at " + to_string(*position) + " is refused: " + ec.message(), position});
    }
    return;
  }
  raise(complete_, target);
  raise(pending_, target);
  if (!id) return;
  const auto place =
      std::upper_bound(handlers_.begin(), handlers_.end(), *target,
                       [](const sequence_position& added, const waiting_handler& waiting) {
                         return added < waiting.target;
                       });
  handlers_.insert(place, {*id, *target});
}

bool checkpoints::abandon(waiter_id id) {
  const auto found = std::find_if(calls_.begin(), calls_.end(),
                                  [&](const waiting_call& call) { return call.id == id; });
  if (found == calls_.end()) return false;
  // An abandoned SHARD_END is not kept: the return of shard_ended makes it pending.
  if (found->target != shard_end_position()) raise(pending_, found->target);
  calls_.erase(found);
  return true;
}

template <class Predicate>
void checkpoints::notify_calls_if(Predicate chosen, std::error_code result, outputs& out) {
  std::erase_if(calls_, [&](const waiting_call& call) {
    const bool is_chosen = chosen(call);
    if (is_chosen) out.emplace_back(notify_waiter{call.id, result});
    return is_chosen;
  });
}

void checkpoints::notify_handlers(const sequence_position& up_to, std::error_code result,
                                  outputs& out) {
  for (; !handlers_.empty() && handlers_.front().target <= up_to; handlers_.pop_front()) {
    out.emplace_back(notify_waiter{handlers_.front().id, result});
  }
}

void checkpoints::fail_waiters(std::error_code error, outputs& out) {
  notify_handlers(shard_end_position(), error, out);
  notify_calls_if([](const waiting_call&) { return true; }, error, out);
}

bool checkpoints::is_paced(time_point now) const {
  return !last_sent_ || now - *last_sent_ >= interval_;
}

checkpoints::optional_position checkpoints::wanted(time_point now, send_scope scope) const {
  const bool with_pending =
      scope == send_scope::all || (scope == send_scope::paced && is_paced(now));
  optional_position highest;
  for (const waiting_call& call : calls_) raise(highest, call.target);
  if (scope == send_scope::handlers) {  // the highest target below the last record
    const auto at_last_record =
        std::lower_bound(handlers_.begin(), handlers_.end(), delivered_,
                         [](const waiting_handler& waiting, const optional_position& delivered) {
                           return waiting.target < delivered;
                         });
    if (at_last_record != handlers_.begin()) raise(highest, std::prev(at_last_record)->target);
  }
  // A line is sent anyway: it can as well cover what is pending.
  if (with_pending || (highest > persisted_ && scope == send_scope::paced))
    raise(highest, pending_);
  return highest > persisted_ ? highest : std::nullopt;
}

checkpoints::optional_position checkpoints::next(time_point now, send_scope scope) const {
  if (unanswered_ || !has_lease() || now < not_before_) return std::nullopt;
  return wanted(now, scope);
}

bool checkpoints::send(time_point now, send_scope scope, outputs& out) {
  const auto position = next(now, scope);
  if (!position) return false;
  sent(*position, now);
  out.push_back(write_checkpoint{*position});
  return true;
}

void checkpoints::arm_pace(time_point now, outputs& out) {
  if (unanswered_ || !has_pending() || is_paced(now)) return;
  const time_point due = *last_sent_ + interval_;
  if (std::exchange(pace_armed_for_, due) == due) return;
  out.push_back(arm_timer{timer::pace, std::chrono::ceil<std::chrono::milliseconds>(due - now)});
}

void checkpoints::sent(const sequence_position& position, time_point now) {
  detail::require_invariant(!unanswered_, "a checkpoint is sent before the last one is answered");
  detail::require_invariant(has_lease(), "a checkpoint is sent without the lease");
  detail::require_invariant(
      position != shard_end_position() || is_at_end_,
      "the end of the shard is checkpointed before the daemon has reported it");
  detail::require_invariant(position == shard_end_position() || position <= delivered_,
                            "a checkpoint is sent of a record that was not delivered");
  unanswered_ = position;
  last_sent_ = now;
}

bool checkpoints::has_more_than_unanswered(time_point now, send_scope scope) const {
  return has_lease() && wanted(now, scope) > unanswered_;
}

checkpoints::outcome checkpoints::answered(const std::optional<std::string>& error, time_point now,
                                           const std::optional<time_point>& last_retry,
                                           outputs& out) {
  const sequence_position position = *std::exchange(unanswered_, std::nullopt);
  const auto covered = [&](const waiting_call& call) { return call.target <= position; };
  if (!error) {
    raise(persisted_, position);
    end_backoff();
    notify_handlers(position, {}, out);
    notify_calls_if(covered, {}, out);
    return outcome::persisted;
  }
  const std::error_code ec = make_checkpoint_error_code(*error);
  const std::string message = "the checkpoint at " + describe(position) +
                              " failed: " + detail::printable(*error, detail::longest_name);
  if (ec == checkpoint_errc::shutdown) {
    out.push_back(log_line{log_level::warning, message + "; this worker no longer holds the lease",
                           position});
    lose_lease(ec, out);
    return outcome::lease_gone;
  }
  if (ec == checkpoint_condition::retryable) {
    const auto after =
        detail::jittered(detail::longest_backoff(retry_.initial_backoff, retry_.max_backoff,
                                                 ++consecutive_failures_),
                         random_());
    not_before_ = now + after;
    last_sent_.reset();  // the backoff replaces the interval
    const bool too_late = last_retry && not_before_ > *last_retry;
    for (waiting_call& call : calls_) call.attempts += covered(call) ? 1 : 0;
    notify_calls_if(
        [&](const waiting_call& call) {
          return covered(call) && (too_late || call.attempts >= retry_.max_attempts);
        },
        ec, out);
    // Nothing is retried that nobody wants: a waiting call that gave up has the error, and the next
    // call begins anew.
    const std::string retry = "; retrying after " + std::to_string(after.count()) + " ms";
    const bool is_wanted = has_lease() && wanted(now, send_scope::all).has_value();
    out.push_back(
        log_line{log_level::warning, is_wanted && !too_late ? message + retry : message, position});
    if (is_wanted) {
      out.push_back(arm_timer{timer::retry, after});
    } else {
      end_backoff();
    }
    return outcome::retry_later;
  }
  out.push_back(log_line{log_level::error, message, position});
  end_backoff();
  if (pending_ <= position) pending_.reset();
  notify_handlers(position, ec, out);
  notify_calls_if(covered, ec, out);
  return outcome::refused;
}

void checkpoints::not_answered(errc reason, outputs& out) {
  if (!unanswered_) return;
  const sequence_position position = *std::exchange(unanswered_, std::nullopt);
  end_backoff();
  out.push_back(log_line{log_level::warning,
                         "the daemon did not answer the checkpoint at " + describe(position),
                         position});
  notify_calls_if([&](const waiting_call& call) { return call.target <= position; }, reason, out);
}

void checkpoints::drop_pending(errc reason, outputs& out) {
  pending_.reset();
  notify_handlers(shard_end_position(), reason, out);
}

void checkpoints::end_backoff() {
  consecutive_failures_ = 0;
  not_before_ = time_point::min();
}

void checkpoints::report_unpersisted(log_level level, const char* occasion, outputs& out) const {
  if (!has_lease() || !(complete_ > persisted_)) return;
  out.push_back(log_line{level,
                         std::string(occasion) + "records up to " + to_string(*complete_) +
                             " are complete but not checkpointed: they will be delivered again",
                         complete_});
}

void checkpoints::lose_lease(std::error_code error, outputs& out) {
  lease_ = lease_state::lost;
  fail_waiters(error, out);
}

void checkpoints::give_up(outputs& out) {
  if (has_lease()) lease_ = lease_state::given_up;
  fail_waiters(errc::lease_lost, out);
}

}  // namespace kclxx::session

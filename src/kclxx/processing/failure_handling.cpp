// SPDX-License-Identifier: Apache-2.0
#include "processing/failure_handling.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/error.hpp>
#include <kclxx/observer.hpp>
#include <kclxx/processing/failure_policy.hpp>

#include "base/duration.hpp"
#include "base/environment.hpp"
#include "base/fnv.hpp"
#include "base/printable.hpp"

namespace kclxx::processing {

circuit::circuit(const failure_policy& policy, counted unit)
    : unit_(unit),
      most_(policy.breaker ? std::optional(policy.breaker->failures) : std::nullopt),
      max_wait_(policy.breaker.value_or(circuit_breaker()).max_wait),
      first_wait_(std::min(policy.max_backoff, max_wait_)) {}

std::optional<circuit::outage> circuit::on_success(time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<outage> ended;
  if (is_open_) ended = {failures_, now - first_failure_};
  is_quiet_ = true;
  is_open_ = false;
  ++successes_;
  probe_ = no_probe;
  failures_ = 0;
  return ended;
}

circuit::state circuit::on_failure(time_point now, record_state& failed, bool is_outage,
                                   std::uint64_t random) {
  const std::lock_guard lock(mutex_);
  const probe_id running = probe_;
  const bool has_failed_before = failed.successes.has_value();
  const probe_id probe = end_attempt(failed);
  // Others have succeeded since the record first failed: that is no outage.
  const bool is_known =
      unit_ == counted::records ? has_failed_before : failed.successes != successes_;
  if (is_known && !is_open_ && !is_outage) return state::closed;
  is_quiet_ = false;
  if (failures_++ == 0) first_failure_ = now;
  if (is_open_) {
    // While a probe runs, another failure is of an attempt that began before it. Without a probe
    // it counts, too: each and batches have none, they try one record anyway.
    if (probe == running && now >= next_probe_) wait(now, 2 * wait_, random);
    return state::open;
  }
  if (!is_outage && (!most_ || failures_ < *most_)) return state::closed;
  is_open_ = true;
  wait(now, first_wait_, random);
  return state::opens;
}

void circuit::on_own_failure(record_state& failed) {
  const std::lock_guard lock(mutex_);
  end_attempt(failed);
}

circuit::probe_id circuit::end_attempt(record_state& failed) {
  if (!failed.successes) failed.successes = successes_;
  const probe_id ended = std::exchange(failed.probe, no_probe);
  if (ended == probe_) probe_ = no_probe;
  return ended;
}

std::optional<circuit::time_point> circuit::next_probe() const {
  if (!is_open_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return probe_ == no_probe ? std::optional(next_probe_) : std::nullopt;
}

std::int64_t circuit::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

std::optional<circuit::probe_id> circuit::try_begin_probe(time_point now) {
  const std::lock_guard lock(mutex_);
  if (!is_open_) return no_probe;
  if (probe_ != no_probe || now < next_probe_) return std::nullopt;
  return probe_ = ++last_probe_;
}

void circuit::wait(time_point now, std::chrono::milliseconds time, std::uint64_t random) {
  wait_ = std::min(time, max_wait_);
  next_probe_ = now + detail::jittered(wait_, random);
}

}  // namespace kclxx::processing

namespace kclxx {

parking_lot::~parking_lot() = default;
void parking_lot::prepare(const shard_context&) {}

permanent_error::~permanent_error() = default;
outage_error::~outage_error() = default;

namespace {

std::string text_of(const batch_failure::failed& failed) {
  return to_string(failed.position) +
         (failed.cause ? ": " + processing::message_of(failed.cause) : std::string());
}

std::string text_of(const std::vector<batch_failure::failed>& records) {
  if (records.empty()) throw std::invalid_argument("batch_failure: no record is named");
  return std::to_string(records.size()) + " of the batch's records failed, the first at " +
         text_of(records.front());
}

}  // namespace

batch_failure::batch_failure(const sequence_position& position, std::exception_ptr cause) {
  std::vector<failed> records{{position, std::move(cause)}};
  std::string text = "the batch failed at " + text_of(records.front());
  contents_ =
      std::make_shared<const contents>(contents{std::move(records), position, std::move(text)});
}

batch_failure::batch_failure(std::vector<failed> records,
                             std::optional<sequence_position> last_tried) {
  std::string text = text_of(records);
  contents_ = std::make_shared<const contents>(
      contents{std::move(records), std::move(last_tried), std::move(text)});
}

batch_failure::~batch_failure() = default;

}  // namespace kclxx

namespace kclxx::processing {

namespace {

using std::chrono::milliseconds;

void require(bool is_valid, const char* problem) {
  if (!is_valid) throw std::invalid_argument(std::string("failure_policy: ") + problem);
}

std::uint64_t hash(std::string_view text, std::uint64_t seed) {
  detail::fnv_hash sum(seed);
  sum.add(text);
  return sum.value() ^ (sum.value() >> 32U);
}

/// Arrival times reach further than a difference of two of them does.
bool is_older(std::chrono::system_clock::time_point arrival,
              std::chrono::system_clock::time_point now, std::chrono::seconds most) {
  const milliseconds age = std::chrono::ceil<milliseconds>(now.time_since_epoch()) -
                           std::chrono::floor<milliseconds>(arrival.time_since_epoch());
  return std::chrono::ceil<std::chrono::seconds>(age) > most;
}

std::string count_of(std::int64_t count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace

observer::record_attempted attempt_event(const record& attempted, int attempt,
                                         std::chrono::nanoseconds duration,
                                         const std::exception_ptr& thrown) {
  using outcome = observer::record_attempted::outcome;
  return {attempted.position(), attempt, duration, thrown ? outcome::failed : outcome::succeeded,
          thrown ? message_of(thrown) : std::string()};
}

failure_policy checked(failure_policy policy) {
  constexpr milliseconds none{0};
  require(policy.max_attempts.value_or(1) > 0, "max_attempts is below 1; unset is without end");
  require(policy.initial_backoff >= none && policy.max_backoff >= none, "a backoff is negative");
  require(!policy.max_age || policy.max_age->count() >= 0, "max_age is negative");
  if (policy.breaker) {
    require(policy.breaker->failures > 0, "breaker->failures is below 1; unset is no breaker");
    require(policy.breaker->max_wait >= none, "breaker->max_wait is negative");
  }
  if (policy.bad_record == bad_record::park && !policy.lot) {
    const auto directory = detail::own_environment("KCLXX_PARKING_DIR");
    require(directory.has_value(),
            "bad_record::park needs a place: set KCLXX_PARKING_DIR to a directory, or "
            "failure_policy::lot");
    policy.lot = std::make_shared<parking_file>(*directory);
  }
  const auto limit = [](milliseconds& wait) {
    wait = std::clamp<milliseconds>(wait, milliseconds(1), std::chrono::hours(24));
  };
  limit(policy.initial_backoff);
  limit(policy.max_backoff);
  if (policy.breaker) limit(policy.breaker->max_wait);
  return policy;
}

failure_handling::failure_handling(failure_policy policy, const shard_context& shard,
                                   circuit::counted unit)
    : policy_(std::move(policy)),
      shard_(shard),
      service_(detail::service_access::of(shard)),
      is_observed_(service_->is_observed()),
      circuit_(policy_, unit) {
  if (policy_.bad_record != bad_record::park) return;
  try {
    prepare_lot();
  } catch (...) {
    const auto thrown = std::current_exception();
    if (is_lease_gone(thrown)) throw;
    shard_.log(log_level::error, message_of(thrown) +
                                     "; a record that has to be parked will be tried again until "
                                     "it can be");
  }
}

void failure_handling::prepare_lot() {
  if (is_lot_prepared_) return;
  policy_.lot->prepare(shard_);
  is_lot_prepared_ = true;
}

void failure_handling::judge(std::span<failure> failures, bool has_completed) {
  copies_.leave_if_copied();
  for (failure& one : failures) {
    if (!is_lease_gone(one.thrown)) continue;
    one.decided = failure::outcome::lease_gone;
    return;
  }
  const bool is_success =
      has_completed && std::none_of(failures.begin(), failures.end(),
                                    [this](const failure& one) { return is_outage(one.thrown); });
  auto of_call = circuit::state::closed;
  if (is_success) {
    for (failure& one : failures) circuit_.on_own_failure(one.attempts->at_circuit);
    if (on_success()) of_call = circuit::state::open;  // as long as the call lasted
  }
  for (failure& one : failures) {
    failed_attempts& attempts = *one.attempts;
    if (attempts.count++ == 0) attempts.first_error = message_of(one.thrown);
    const error_kind kind = kind_of(one.thrown);
    const auto state = is_success ? of_call : notice(one, kind);
    if (kind == error_kind::temporary && state == circuit::state::closed) ++attempts.counted;
    const std::string reason = why_bad(one, kind);
    if (reason.empty()) {
      retry(one);
    } else {
      one.bad_since = "after " + count_of(attempts.count, "attempt") + " (" + reason + ")";
      if (policy_.bad_record != bad_record::park) give_up(one);
      if (one.decided == failure::outcome::stop) return;
    }
  }
}

circuit::state failure_handling::notice(const failure& one, error_kind kind) {
  auto& at_circuit = one.attempts->at_circuit;
  if (kind == error_kind::permanent) {
    circuit_.on_own_failure(at_circuit);
    return circuit::state::closed;
  }
  const auto state = circuit_.on_failure(shard_.now(), at_circuit, kind == error_kind::outage,
                                         random(*one.record, one.attempts->count));
  if (state == circuit::state::opens) report_open(one, kind == error_kind::outage);
  return state;
}

void failure_handling::on_retry_success(const sequence_position& position, int attempt) {
  if (!is_failure_logged_.exchange(false)) return;
  shard_.log(log_level::info,
             "record " + to_string(position) + " succeeded in attempt " + std::to_string(attempt),
             position);
}

void failure_handling::retry(failure& one) {
  one.decided = failure::outcome::retry;
  one.delay = backoff(one);
  const std::string error = message_of(one.thrown);
  if (is_observed_) {
    service_->observe(observer::record_retried{one.record->position(), one.attempts->count + 1,
                                               one.delay, error});
  }
  if (acquire_log_turn(retries_logged_)) {
    is_failure_logged_ = true;
    log(log_level::warning, "attempt " + std::to_string(one.attempts->count) + " at ", *one.record,
        " failed: " + error + "; the next one is in " + std::to_string(one.delay.count()) +
            " ms (logged once a minute at most)");
  }
}

bool failure_handling::is_complete_after(const record& failed, failed_attempts& attempts,
                                         std::exception_ptr thrown) {
  failure one{&failed, &attempts, std::move(thrown)};
  decide({&one, 1});
  switch (one.decided) {
    case failure::outcome::retry:
      shard_.sleep_for(one.delay);
      return false;
    case failure::outcome::complete:
      return true;
    case failure::outcome::stop:
    case failure::outcome::lease_gone:
      break;
  }
  std::rethrow_exception(one.thrown);
}

failure_handling::error_kind failure_handling::kind_of(const std::exception_ptr& thrown) const {
  try {
    std::rethrow_exception(thrown);
  } catch (const outage_error&) {
    return error_kind::outage;
  } catch (const permanent_error&) {
    return error_kind::permanent;
  } catch (const std::exception& error) {
    if (policy_.is_outage && policy_.is_outage(error)) return error_kind::outage;
    if (policy_.is_permanent && policy_.is_permanent(error)) return error_kind::permanent;
  } catch (...) {  // NOLINT(bugprone-empty-catch): nobody can tell
  }
  return error_kind::temporary;
}

std::string failure_handling::why_bad(const failure& one, error_kind kind) const {
  if (kind == error_kind::permanent) return "a permanent error";
  if (kind == error_kind::outage) return {};
  const auto arrival = one.record->approximate_arrival_timestamp();
  if (policy_.max_age && arrival && is_older(*arrival, shard_.date(), *policy_.max_age)) {
    return "older than " + std::to_string(policy_.max_age->count()) + " s";
  }
  if (policy_.max_attempts && one.attempts->counted >= *policy_.max_attempts) {
    return "no attempt is left";
  }
  return {};
}

/// For `stop` and `skip`.
void failure_handling::give_up(failure& one) {
  const std::string error = message_of(one.thrown);
  const std::string after = std::exchange(one.bad_since, {});
  if (policy_.bad_record == bad_record::stop) {
    log(log_level::error, "", *one.record, " failed " + after + "; the session ends: " + error);
    one.decided = failure::outcome::stop;
    return;
  }
  log(log_level::error, "", *one.record, " skipped " + after + ": " + error);
  if (is_observed_) {
    service_->observe(observer::record_skipped{one.record->position(), one.attempts->count, error});
  }
  one.decided = failure::outcome::complete;
}

void failure_handling::park(std::span<failure> failures) {
  std::vector<failed_record> bad;
  for (const failure& one : failures) {
    if (one.bad_since.empty()) continue;
    bad.push_back(
        {*one.record, one.attempts->count, one.attempts->first_error, message_of(one.thrown)});
  }
  if (bad.empty()) return;
  try {
    prepare_lot();
    policy_.lot->park(shard_, bad);
  } catch (...) {
    return retry_parking(failures, std::current_exception());
  }
  for (failure& one : failures) {
    if (one.bad_since.empty()) continue;
    one.decided = failure::outcome::complete;
    const std::string error = message_of(one.thrown);
    log(log_level::warning, "", *one.record, " parked " + one.bad_since + ": " + error);
    if (is_observed_) {
      service_->observe(
          observer::record_parked{one.record->position(), one.attempts->count, error});
    }
  }
}

void failure_handling::retry_parking(std::span<failure> failures,
                                     const std::exception_ptr& of_park) {
  for (failure& one : failures) {
    if (one.bad_since.empty()) continue;
    one.bad_since.clear();
    if (is_lease_gone(of_park)) {
      one.thrown = of_park;
      one.decided = failure::outcome::lease_gone;
      continue;
    }
    if (acquire_log_turn(parking_failures_logged_)) {
      log(log_level::error, "", *one.record,
          " cannot be parked: " + message_of(of_park) +
              "; it is not complete, and is tried again (logged once a minute at most)");
    }
    one.thrown = of_park;
    retry(one);
  }
}

bool failure_handling::close() {
  const auto ended = circuit_.on_success(shard_.now());
  if (!ended) return false;
  is_failure_logged_ = false;
  shard_.log(log_level::info,
             "the circuit is closed: an attempt succeeded, after " +
                 std::to_string(ended->failures) + " that failed within " +
                 std::to_string(std::chrono::duration_cast<milliseconds>(ended->time).count()) +
                 " ms");
  if (is_observed_) service_->observe(observer::circuit_changed{false, ended->failures, {}});
  return true;
}

void failure_handling::report_open(const failure& last, bool is_outage) {
  const auto failures = circuit_.failures();
  const std::string error = message_of(last.thrown);
  log(log_level::error,
      "the circuit is open: " +
          (is_outage
               ? "the program reports an outage"
               : "the last " +
                     count_of(failures,
                              circuit_.unit() == circuit::counted::records ? "record" : "attempt") +
                     " failed, so the fault is probably in no record") +
          ". Until an attempt succeeds, none is counted, and one at a time is made. The last one, "
          "at ",
      *last.record, ": " + error);
  if (is_observed_) service_->observe(observer::circuit_changed{true, failures, error});
}

bool failure_handling::acquire_log_turn(std::optional<shard_context::clock::time_point>& last) {
  const auto now = shard_.now();
  const std::lock_guard lock(mutex_);
  if (last && now - *last < std::chrono::minutes(1)) return false;
  last = now;
  return true;
}

milliseconds failure_handling::backoff(const failure& one) const {
  const auto probe = circuit_.next_probe();
  const auto now = shard_.now();
  // A permanent error sets no next probe.
  if (probe && *probe > now) return std::chrono::ceil<milliseconds>(*probe - now);
  return detail::jittered(
      detail::longest_backoff(policy_.initial_backoff, policy_.max_backoff, one.attempts->count),
      random(*one.record, one.attempts->count));
}

/// The same in every run with the same seed, so that a test's time does not vary.
std::uint64_t failure_handling::random(const record& failed, int failures) const {
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;
  const auto* const scheduler = service_->scheduler();
  const std::uint64_t seed = scheduler != nullptr ? scheduler->seed() : 0;
  return hash(failed.sequence_number(),
              hash(shard_.shard_id(),
                   (failed.sub_sequence_number() << 32U | static_cast<std::uint64_t>(failures)) +
                       seed * spread));
}

void failure_handling::log(log_level level, const std::string& beginning, const record& subject,
                           const std::string& ending) const {
  std::string line = beginning + "record " + to_string(subject.position());
  if (const auto key = subject.partition_key()) {
    line.append(" (partition key ").append(detail::quoted(*key)).append(")");
  }
  shard_.log(level, line + ending, subject.position());
}

}  // namespace kclxx::processing

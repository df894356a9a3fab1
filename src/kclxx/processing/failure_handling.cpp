// SPDX-License-Identifier: Apache-2.0
#include "processing/failure_handling.hpp"

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <kclxx/error.hpp>

#include "base/duration.hpp"
#include "base/environment.hpp"
#include "base/fnv.hpp"
#include "base/overloaded.hpp"

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

}  // namespace

circuit::circuit(const failure_policy& policy, counted unit)
    : unit_(unit),
      failures_to_open_(policy.breaker ? std::optional(policy.breaker->failures) : std::nullopt),
      max_wait_(policy.breaker.value_or(circuit_breaker()).max_wait),
      first_wait_(std::min(policy.max_backoff, max_wait_)) {}

std::optional<circuit::outage> circuit::on_success(time_point now) {
  const std::lock_guard lock(mutex_);
  std::optional<outage> ended;
  if (is_open_) ended = {failures_, now - first_failure_};
  is_quiet_ = true;
  is_open_ = false;
  ++successes_;
  running_probe_ = no_probe;
  failures_ = 0;
  return ended;
}

void circuit::note_failure(record_state& failed) {
  const std::lock_guard lock(mutex_);
  is_quiet_ = false;
  if (!failed.successes_at_first_failure) failed.successes_at_first_failure = successes_;
}

circuit::state circuit::on_failure(time_point now, record_state& failed, bool is_outage,
                                   std::uint64_t random) {
  const std::lock_guard lock(mutex_);
  const probe_id running = running_probe_;
  const bool has_failed_before = failed.has_failed;
  const probe_id probe = end_attempt(failed);
  // When other records have succeeded since this one first failed, there is no outage.
  const bool is_known = failed.successes_at_first_failure != successes_ ||
                        (unit_ == counted::records && has_failed_before);
  if (is_known && !is_open_ && !is_outage) return state::closed;
  is_quiet_ = false;
  if (failures_++ == 0) first_failure_ = now;
  if (is_open_) {
    // While a probe runs, any other attempt that fails began before it, and moves no probe. Without
    // a running probe each failure counts: each and batches admit no probes, but try one record
    // anyway.
    if (probe == running && now >= next_probe_) set_next_probe(now, 2 * wait_, random);
    return state::open;
  }
  if (!is_outage && (!failures_to_open_ || failures_ < *failures_to_open_)) return state::closed;
  is_open_ = true;
  set_next_probe(now, first_wait_, random);
  return state::opens;
}

void circuit::on_own_failure(record_state& failed) {
  const std::lock_guard lock(mutex_);
  end_attempt(failed);
}

circuit::probe_id circuit::end_attempt(record_state& failed) {
  if (!failed.successes_at_first_failure) failed.successes_at_first_failure = successes_;
  failed.has_failed = true;
  const probe_id ended = std::exchange(failed.probe, no_probe);
  if (ended == running_probe_) running_probe_ = no_probe;
  return ended;
}

std::optional<circuit::time_point> circuit::next_probe() const {
  if (!is_open_.load(std::memory_order_relaxed)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  return running_probe_ == no_probe ? std::optional(next_probe_) : std::nullopt;
}

std::int64_t circuit::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

std::optional<circuit::probe_id> circuit::try_begin_probe(time_point now) {
  const std::lock_guard lock(mutex_);
  if (!is_open_) return no_probe;  // it was closed meanwhile
  if (running_probe_ != no_probe || now < next_probe_) return std::nullopt;
  return running_probe_ = ++last_probe_;
}

void circuit::set_next_probe(time_point now, milliseconds wait, std::uint64_t random) {
  wait_ = std::min(wait, max_wait_);
  next_probe_ = now + detail::jittered(wait_, random);
}

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
  service_->track_completion();
  if (policy_.bad_record != bad_record::park) return;
  const auto thrown = exception_of([this] { prepare_lot(); });
  if (!thrown) return;
  if (is_lease_gone(thrown)) std::rethrow_exception(thrown);
  shard_.log(
      log_level::error,
      message_of(thrown) + "; a record that has to be parked will be tried again until it can be");
}

/// Several runners may do this at the same time: a parking lot allows that.
void failure_handling::prepare_lot() {
  if (is_lot_prepared_) return;
  policy_.lot->prepare(shard_);
  is_lot_prepared_ = true;
}

void failure_handling::judge(std::span<failure> failures, bool has_completed) {
  copies_.leave_if_copied();
  for (failure& failed : failures) {
    failed.kind = kind_of(failed.thrown);
    if (failed.kind != error_kind::lease_gone) continue;
    failed.verdict = processing::decide(policy_, facts_of(failed));
    return;  // the lease is gone for all of them
  }
  // A call that completed other records is a success for the circuit, unless it tells of an outage.
  const bool is_success =
      has_completed && std::none_of(failures.begin(), failures.end(), [](const failure& failed) {
        return failed.kind == error_kind::outage;
      });
  auto state_of_call = circuit::state::closed;
  if (is_success) {
    for (failure& failed : failures) circuit_.on_own_failure(failed.attempts->at_circuit);
    if (on_success()) state_of_call = circuit::state::open;  // the circuit was, during the call
  }
  for (failure& failed : failures) {
    failed_attempts& attempts = *failed.attempts;
    if (attempts.count++ == 0) attempts.first_error = message_of(failed.thrown);
    const auto state = is_success ? state_of_call : tell_circuit(failed);
    if (failed.kind == error_kind::temporary && state == circuit::state::closed) ++attempts.counted;
    failed.verdict = processing::decide(policy_, facts_of(failed));
    report(failed);
    if (std::holds_alternative<verdicts::stop>(failed.verdict)) return;
  }
}

verdict failure_handling::decide(const record& failed, failed_attempts& attempts,
                                 std::exception_ptr thrown) {
  failure judged{&failed, &attempts, std::move(thrown)};
  judge({&judged, 1});
  park({&judged, 1});
  return std::move(judged.verdict);
}

bool failure_handling::is_complete_after(const verdict& decided) const {
  return std::visit(
      overloaded{[this](const verdicts::retry& retry) {
                   shard_.sleep_for(retry.delay);
                   return false;
                 },
                 [](const verdicts::complete&) { return true; },
                 [](const verdicts::park&) { return false; },  // park() leaves none of these
                 [](const auto& end) -> bool { std::rethrow_exception(end.exception); }},
      decided);
}

failure_facts failure_handling::facts_of(const failure& failed) const {
  return {.kind = failed.kind,
          .thrown = failed.thrown,
          .attempts = failed.attempts->count,
          .counted_attempts = failed.attempts->counted,
          .arrival = failed.record->approximate_arrival_timestamp(),
          .date = shard_.date(),
          .now = shard_.now(),
          .next_probe = circuit_.next_probe(),
          .random = random(failed)};
}

circuit::state failure_handling::tell_circuit(const failure& failed) {
  auto& at_circuit = failed.attempts->at_circuit;
  if (failed.kind == error_kind::permanent) {
    circuit_.on_own_failure(at_circuit);
    return circuit::state::closed;
  }
  const auto state = circuit_.on_failure(shard_.now(), at_circuit,
                                         failed.kind == error_kind::outage, random(failed));
  if (state == circuit::state::opens) report_open(failed);
  return state;
}

void failure_handling::on_retry_success(const sequence_position& position, int attempt) {
  if (!is_failure_logged_.exchange(false)) return;
  shard_.log(log_level::info,
             "record " + to_string(position) + " succeeded in attempt " + std::to_string(attempt),
             position);
}

/// park() reports what it has parked.
void failure_handling::report(const failure& judged) {
  if (std::holds_alternative<verdicts::retry>(judged.verdict)) {
    report_retry(judged, judged.thrown);
  } else if (const auto* skipped = std::get_if<verdicts::complete>(&judged.verdict)) {
    const std::string error = message_of(judged.thrown);
    log(log_level::error, "", *judged.record, " skipped " + skipped->reason + ": " + error);
    if (is_observed_) {
      service_->observe(
          observer::record_skipped{judged.record->position(), judged.attempts->count, error});
    }
  } else if (const auto* stop = std::get_if<verdicts::stop>(&judged.verdict)) {
    log(log_level::error, "", *judged.record,
        " failed " + stop->reason + "; the session ends: " + message_of(judged.thrown));
  }
}

void failure_handling::report_retry(const failure& failed, const std::exception_ptr& cause) {
  const milliseconds delay = std::get<verdicts::retry>(failed.verdict).delay;
  const std::string error = message_of(cause);
  if (is_observed_) {
    service_->observe(observer::record_retried{failed.record->position(),
                                               failed.attempts->count + 1, delay, error});
  }
  if (acquire_log_turn(retry_logged_)) {
    is_failure_logged_ = true;
    log(log_level::warning, "attempt " + std::to_string(failed.attempts->count) + " at ",
        *failed.record,
        " failed: " + error + "; the next one is in " + std::to_string(delay.count()) +
            " ms (logged once a minute at most)");
  }
}

void failure_handling::park(std::span<failure> failures) {
  std::vector<failed_record> bad_records;
  std::vector<failure*> to_park;
  for (failure& failed : failures) {
    if (!std::holds_alternative<verdicts::park>(failed.verdict)) continue;
    to_park.push_back(&failed);
    bad_records.push_back({*failed.record, failed.attempts->count, failed.attempts->first_error,
                           message_of(failed.thrown)});
  }
  if (to_park.empty()) return;
  const auto thrown = exception_of([&] {
    prepare_lot();
    policy_.lot->park(shard_, bad_records);
  });
  for (std::size_t i = 0; i < to_park.size(); ++i) {
    failure& failed = *to_park[i];
    if (!thrown) {
      const std::string& error = bad_records[i].last_error;
      const std::string reason = std::get<verdicts::park>(failed.verdict).reason;
      failed.verdict = verdicts::complete{reason};
      log(log_level::warning, "", *failed.record, " parked " + reason + ": " + error);
      if (is_observed_) {
        service_->observe(
            observer::record_parked{failed.record->position(), failed.attempts->count, error});
      }
    } else if (is_lease_gone(thrown)) {
      failed.verdict = verdicts::lease_gone{thrown};
    } else {
      if (acquire_log_turn(parking_failure_logged_)) {
        log(log_level::error, "", *failed.record,
            " cannot be parked: " + message_of(thrown) +
                "; it is not complete, and is tried again (logged once a minute at most)");
      }
      failed.verdict = retry_after(policy_, facts_of(failed));
      report_retry(failed, thrown);
    }
  }
}

bool failure_handling::close() {
  const auto ended = circuit_.on_success(shard_.now());
  if (!ended) return false;  // it was closed, or another thread's success has closed it
  is_failure_logged_ = false;
  shard_.log(log_level::info,
             "the circuit is closed: an attempt succeeded, after " +
                 std::to_string(ended->failures) + " that failed within " +
                 std::to_string(std::chrono::duration_cast<milliseconds>(ended->time).count()) +
                 " ms");
  if (is_observed_) service_->observe(observer::circuit_changed{false, ended->failures, {}});
  return true;
}

void failure_handling::report_open(const failure& last) {
  const auto failures = circuit_.failures();
  const std::string error = message_of(last.thrown);
  const char* const unit = circuit_.unit() == circuit::counted::records ? "record" : "attempt";
  log(log_level::error,
      "the circuit is open: " +
          (last.kind == error_kind::outage ? "the program reports an outage"
                                           : "the last " + count_of(failures, unit) +
                                                 " failed, so the fault is probably in no record") +
          ". Until an attempt succeeds, none is counted, and one at a time is made. The last one, "
          "at ",
      *last.record, ": " + error);
  if (is_observed_) service_->observe(observer::circuit_changed{true, failures, error});
}

bool failure_handling::acquire_log_turn(
    std::optional<shard_context::clock::time_point>& last_logged) {
  const auto now = shard_.now();
  const std::lock_guard lock(mutex_);
  if (last_logged && now - *last_logged < std::chrono::minutes(1)) return false;
  last_logged = now;
  return true;
}

/// Repeats itself in every run with the same seed, so that a test's time does not vary.
std::uint64_t failure_handling::random(const failure& failed) const {
  constexpr std::uint64_t spread = 0x9E3779B97F4A7C15;
  const auto* const scheduler = service_->scheduler();
  const std::uint64_t seed = scheduler != nullptr ? scheduler->seed() : 0;
  const std::uint64_t number = failed.record->sub_sequence_number() << 32U |
                               static_cast<std::uint64_t>(failed.attempts->count);
  return hash(failed.record->sequence_number(), hash(shard_.shard_id(), number + seed * spread));
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

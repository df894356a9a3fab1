// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include <kclxx/observer.hpp>
#include <kclxx/processing/batches.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

#include "base/duration.hpp"
#include "processing/failure_handling.hpp"
#include "processing/gathered_records.hpp"

namespace kclxx {

namespace {

using processing::failed_attempts;
using std::chrono::milliseconds;

/// The records of a batch that are not complete, in order, and which of them a handler gets next.
/// Places count from the first of them.
class rest_of_batch {
 public:
  explicit rest_of_batch(record_batch batch) : all_(std::move(batch)), rest_(all_) {}

  [[nodiscard]] bool empty() const noexcept { return rest_.empty(); }
  [[nodiscard]] const record& at(std::size_t place) const noexcept { return rest_[place]; }
  /// What to try next: all; or those that are tried without the others; or, while a failing record
  /// is searched for, half of those that it is among.
  [[nodiscard]] record_batch next() const {
    if (suspects_ > 0) return rest_.slice(0, std::max<std::size_t>(suspects_ / 2, 1));
    return alone_ > 0 ? rest_.slice(0, alone_) : rest_;
  }
  /// One of the first `count` records fails.
  void narrow(std::size_t count) noexcept { suspects_ = count; }
  void complete(std::size_t count) {
    const std::size_t tried = std::min(count, attempts_.size());
    attempts_.erase(attempts_.begin(), attempts_.begin() + static_cast<std::ptrdiff_t>(tried));
    suspects_ -= std::min(count, suspects_);
    alone_ -= std::min(count, alone_);
    rest_ = rest_.slice(count, rest_.size());
  }
  /// Of the first `count` records only those at `places` are not complete. They are tried next,
  /// without the others.
  void keep(std::size_t count, std::vector<std::size_t> places) {
    struct chosen {
      std::vector<record> records;
      record_batch source;  // keeps alive what the records are views of
    };
    alone_ = places.size();
    suspects_ = 0;
    for (std::size_t place = count; place < rest_.size(); ++place) places.push_back(place);
    const auto left = std::make_shared<chosen>(chosen{{}, all_});
    left->records.reserve(places.size());
    std::vector<failed_attempts> attempts;
    for (const std::size_t place : places) {
      left->records.push_back(rest_[place]);
      if (place >= attempts_.size()) continue;
      attempts.resize(left->records.size());
      attempts.back() = std::move(attempts_[place]);
    }
    rest_ = record_batch(left->records, left, all_.millis_behind_latest());
    attempts_ = std::move(attempts);
  }
  /// All records up to here are complete; std::nullopt when not even the first is.
  [[nodiscard]] std::optional<sequence_position> watermark() const {
    if (rest_.empty()) return all_.back().position();
    const sequence_position first = rest_.front().position();
    const auto incomplete = std::partition_point(
        all_.begin(), all_.end(), [&](const record& one) { return one.position() < first; });
    if (incomplete == all_.begin()) return std::nullopt;
    return std::prev(incomplete)->position();
  }

  [[nodiscard]] failed_attempts& attempts(std::size_t place) {
    if (attempts_.size() <= place) attempts_.resize(place + 1);
    return attempts_[place];
  }
  /// Of the first record.
  [[nodiscard]] const failed_attempts& attempts() const noexcept {
    static const failed_attempts none;
    return attempts_.empty() ? none : attempts_.front();
  }

 private:
  record_batch all_;
  record_batch rest_;
  std::size_t suspects_ = 0;
  std::size_t alone_ = 0;
  std::vector<failed_attempts> attempts_;  // of the first records
};

/// What a handler threw: the failure itself, and where it is, if it reported that.
struct batch_error {
  std::exception_ptr cause;
  std::optional<batch_failure> reported{};
};

batch_error current_error() {
  const auto thrown = std::current_exception();
  try {
    throw;
  } catch (const batch_failure& error) {
    const auto& cause = error.records().front().cause;
    return {cause ? cause : thrown, error};
  } catch (...) {
    return {thrown};
  }
}

/// The record at the position; the end when no record of the batch has it.
std::size_t place_of(const sequence_position& position, const record_batch& batch) {
  const auto found = std::partition_point(
      batch.begin(), batch.end(), [&](const record& one) { return one.position() < position; });
  const bool is_there = found != batch.end() && found->position() == position;
  return static_cast<std::size_t>((is_there ? found : batch.end()) - batch.begin());
}

/// A record of a part that failed, while others of the part may be complete.
struct named_record {
  std::size_t place;
  std::exception_ptr cause;
};

/// In order; none if the error does not name them.
std::vector<named_record> named_in(const record_batch& part, const batch_error& error) {
  std::vector<named_record> all;
  if (!error.reported) return all;
  for (const batch_failure::failed& one : error.reported->records()) {
    const std::size_t place = place_of(one.position, part);
    if (place == part.size()) continue;
    all.push_back({place, one.cause ? one.cause : std::make_exception_ptr(*error.reported)});
  }
  const auto before = [](const auto& one, const auto& other) { return one.place < other.place; };
  const auto same = [](const auto& one, const auto& other) { return one.place == other.place; };
  std::stable_sort(all.begin(), all.end(), before);
  all.erase(std::unique(all.begin(), all.end(), same), all.end());
  return all;
}

/// Options with all limits set.
struct batch_limits {
  std::size_t records;
  std::uint64_t bytes;   // of data
  std::uint64_t memory;  // that gathered records take
  milliseconds linger;
  kclxx::order order;
  /// Whether a batch of the daemon's may be divided or wait.
  [[nodiscard]] bool are_any() const noexcept {
    constexpr auto none = std::numeric_limits<std::uint64_t>::max();
    return linger.count() > 0 || records < none || bytes < none;
  }
};

batch_limits valid(const batch_options& options) {
  const auto require = [](bool holds, const char* problem) {
    if (!holds) throw std::invalid_argument(std::string("batch_options: ") + problem);
  };
  require(options.max_records != 0, "max_records is 0");
  require(options.max_bytes != 0, "max_bytes is 0");
  require(options.linger >= milliseconds(0), "linger is negative");
  constexpr auto none = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t most_gathered = std::uint64_t{64} << 20;
  return {options.max_records.value_or(std::numeric_limits<std::size_t>::max()),
          options.max_bytes.value_or(none), std::max(most_gathered, options.max_bytes.value_or(0)),
          detail::clamped(options.linger), options.order};
}

class batches_processor final : public record_processor {
 public:
  batches_processor(const batch_handler& handler, const failure_policy& policy,
                    const batch_limits& limits, const shard_context& shard)
      : limits_(limits),
        shard_(shard),
        service_(detail::service_access::of(shard)),
        stop_(shard.stop_token()),
        failures_(policy, shard_),
        handler_(handler.make(shard_)) {}
  ~batches_processor() override {
    if (timer_) shard_.cancel(*timer_);
  }

  [[nodiscard]] checkpoint_mode mode() const override { return checkpoint_mode::manual; }
  void process_records(record_batch batch, const checkpointer&) override {
    if (!limits_.are_any()) return hand_over(std::move(batch));
    // A daemon that repeats a delivery sends what is gathered already (P69).
    if (!gathered_.empty()) batch = batch.after(gathered_.last_position());
    const auto delivered = shard_.now();
    for (std::size_t offset = 0; offset < batch.size();) {
      const auto [count, is_closed] = next_part(batch, offset);
      record_batch part = batch.slice(offset, count);
      offset += count;
      if (is_closed && gathered_.empty()) {
        oldest_ = delivered;
        hand_over(std::move(part));
      } else {
        gather(part, delivered);
        if (is_closed) hand_over_gathered();
      }
    }
    batch = {};
    look_at_linger();
  }
  void shutdown_requested(const checkpointer&) override { hand_over_gathered(); }
  void shard_ended(const checkpointer&) override { hand_over_gathered(); }

 private:
  using time_point = shard_context::clock::time_point;

  struct part_of_batch {
    std::size_t count;
    bool is_closed;  // no record is to be added
  };
  /// What fits beside the gathered records. A record that is larger than the limit is alone.
  [[nodiscard]] part_of_batch next_part(const record_batch& batch, std::size_t offset) const {
    const std::size_t left = batch.size() - offset;
    const std::size_t most = std::min(left, limits_.records - gathered_.records());
    const bool may_gather = limits_.linger.count() > 0;
    std::uint64_t bytes = gathered_.data_bytes();
    std::uint64_t memory = gathered_.bytes();
    std::size_t count = 0;
    for (; count < most && bytes < limits_.bytes; ++count) {
      const record& next = batch[offset + count];
      const bool is_first = count == 0 && gathered_.empty();
      if (may_gather) memory += processing::gathered_records::bytes_of(next);
      if (!is_first &&
          (next.data().size() > limits_.bytes - bytes || (may_gather && memory > limits_.memory))) {
        break;
      }
      bytes += next.data().size();
    }
    const bool is_full = bytes >= limits_.bytes || gathered_.records() + count == limits_.records;
    return {count, is_full || count < left || limits_.linger.count() == 0};
  }

  void gather(const record_batch& part, time_point delivered) {
    if (gathered_.empty()) oldest_ = delivered;
    gathered_.add(part);
    observe_in_flight({});
  }

  void hand_over_gathered() {
    if (!gathered_.empty()) hand_over(gathered_.take());
  }

  /// A timer is left to run when its records are handed over: it then looks at those that follow.
  void look_at_linger() {
    if (gathered_.empty()) return;
    const auto due = oldest_ + limits_.linger;
    const auto now = shard_.now();
    if (now >= due) return hand_over_gathered();
    if (timer_) return;
    timer_ = shard_.after(std::chrono::ceil<milliseconds>(due - now), [this] {
      timer_.reset();
      look_at_linger();
      if (gathered_.empty()) gathered_.release_memory();
    });
  }

  void observe_in_flight(const record_batch& handed_over) {
    if (limits_.linger.count() == 0 || !service_->is_observed()) return;
    observer::window_changed event{
        gathered_.records() + handed_over.size(), gathered_.data_bytes(), {}, complete_};
    for (const record& one : handed_over) event.bytes += one.data().size();
    if (event.records > 0) event.oldest = oldest_;
    service_->observe(std::move(event));
  }

  /// Returns when the records are complete, or a stop is requested.
  void hand_over(record_batch batch) {
    observe_in_flight(batch);
    rest_of_batch rest(std::move(batch));
    while (!rest.empty() && !stop_.stop_requested()) {
      const record_batch part = rest.next();
      const auto error = run(part, rest.attempts());
      // What returns or throws after a stop is neither complete nor failed.
      if (stop_.stop_requested()) break;
      if (!error) {
        succeed(rest, part.size());
      } else if (const auto named = named_in(part, *error); !named.empty()) {
        decide(rest, part, named, error->reported->last_tried());
      } else {
        decide(rest, part, *error);
      }
    }
    observe_in_flight({});
  }

  std::optional<batch_error> run(const record_batch& part, const failed_attempts& attempts) {
    try {
      const long handles = part.owner().use_count();
      failures_.attempt(part.front(), attempts, [&] { handler_(part, shard_); });
      if (part.owner().use_count() > handles) warn_of_kept_batch();
      return std::nullopt;
    } catch (...) {
      return current_error();
    }
  }

  void succeed(rest_of_batch& rest, std::size_t count) {
    failures_.on_success();
    const int failed = rest.attempts().count;
    if (failed > 0) failures_.on_retry_success(rest.at(0).position(), failed + 1);
    complete(rest, count);
  }

  void complete(rest_of_batch& rest, std::size_t count) {
    rest.complete(count);
    request_checkpoint(rest);
  }

  void request_checkpoint(const rest_of_batch& rest) {
    const auto position = rest.watermark();
    if (!position) return;
    complete_ = position;
    service_->async_checkpoint(*position, {});
  }

  /// The error does not tell which record failed.
  void decide(rest_of_batch& rest, const record_batch& part, batch_error error) {
    const bool is_outage = failures_.is_outage(error.cause);
    if (!is_outage) rest.narrow(part.size());
    if (processing::is_lease_gone(error.cause)) std::rethrow_exception(error.cause);
    if ((is_outage || part.size() == 1) &&
        failures_.is_complete_after(rest.at(0), rest.attempts(0), std::move(error.cause))) {
      complete(rest, 1);
    }
  }

  /// The error names the records that failed.
  void decide(rest_of_batch& rest, const record_batch& part, const std::vector<named_record>& named,
              const std::optional<sequence_position>& last_tried) {
    using outcome = processing::failure::outcome;
    const std::vector<std::size_t> incomplete = incomplete_in(part, named, last_tried);
    std::vector<processing::failure> failures;
    failures.reserve(named.size());
    static_cast<void>(rest.attempts(named.back().place));  // none of the following moves them
    for (const named_record& one : named) {
      failures.push_back({&rest.at(one.place), &rest.attempts(one.place), one.cause});
    }
    const bool has_completed = incomplete.size() < part.size();
    if (has_completed && last_tried) failures_.on_success();  // before it stopped at a failure
    failures_.decide(failures, has_completed && !last_tried);
    if (stop_.stop_requested()) return;
    std::vector<std::size_t> again;
    auto next_named = named.begin();
    for (const std::size_t place : incomplete) {
      const bool is_named = next_named != named.end() && next_named->place == place;
      const auto at = next_named - named.begin();
      if (is_named) ++next_named;
      const bool is_complete =
          is_named && failures[static_cast<std::size_t>(at)].decided == outcome::complete;
      if (!is_complete) again.push_back(place);
    }
    milliseconds wait{0};
    for (const processing::failure& one : failures) wait = std::max(wait, one.delay);
    rest.keep(part.size(), std::move(again));
    request_checkpoint(rest);
    for (const processing::failure& one : failures) {
      const bool leaves = one.decided == outcome::stop || one.decided == outcome::lease_gone;
      if (leaves) std::rethrow_exception(one.thrown);
    }
    if (wait.count() > 0) shard_.sleep_for(wait);
  }

  /// The places of the named records, of those that were not tried and, when asked, of the later
  /// ones of the named records' keys.
  [[nodiscard]] std::vector<std::size_t> incomplete_in(
      const record_batch& part, const std::vector<named_record>& named,
      const std::optional<sequence_position>& last_tried) const {
    std::vector<std::size_t> places;
    std::unordered_set<std::optional<std::string_view>> keys;
    auto next_named = named.begin();
    for (std::size_t place = 0; place < part.size(); ++place) {
      const std::optional<std::string_view> key = part[place].partition_key();
      const bool is_named = next_named != named.end() && next_named->place == place;
      if (is_named) ++next_named;
      if (is_named && limits_.order == order::key) keys.insert(key);
      const bool was_tried = !last_tried || part[place].position() <= *last_tried;
      if (is_named || !was_tried || keys.contains(key)) places.push_back(place);
    }
    return places;
  }

  void warn_of_kept_batch() {
    if (std::exchange(has_warned_of_kept_batch_, true)) return;
    shard_.log(log_level::warning,
               "the handler returned but a copy of its record_batch is still in use; its records "
               "count as complete already. If they are still being processed, use a "
               "record_processor in checkpoint_mode::manual. Logged once.");
  }

  const batch_limits limits_;
  const shard_context& shard_;
  const std::shared_ptr<detail::shard_service> service_;
  const std::stop_token stop_;
  processing::failure_handling failures_;
  batch_handler::of_shard handler_;
  bool has_warned_of_kept_batch_ = false;

  processing::gathered_records gathered_;
  time_point oldest_{};  // when the first of those in flight was delivered
  std::optional<shard_context::timer_id> timer_;
  std::optional<sequence_position> complete_;
};

}  // namespace

processor_factory batches(batch_handler handler, failure_policy policy, batch_options options) {
  return processor_factory::valid_or_not([&]() -> processor_factory {
    return [handler = std::move(handler), policy = processing::checked(std::move(policy)),
            limits = valid(options)](const shard_context& shard) {
      return std::make_unique<batches_processor>(handler, policy, limits, shard);
    };
  });
}

}  // namespace kclxx

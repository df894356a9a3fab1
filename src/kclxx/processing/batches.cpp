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
#include <variant>
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

namespace verdicts = processing::verdicts;
using processing::error_kind;
using processing::failed_attempts;
using std::chrono::milliseconds;

/// The records of a batch that are not complete, in order, and which of them a handler gets next.
/// Indices count from the first of them.
class remaining_records {
 public:
  explicit remaining_records(record_batch batch) : batch_(std::move(batch)), records_(batch_) {}

  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  [[nodiscard]] const record& at(std::size_t index) const noexcept { return records_[index]; }
  /// What to try next: while a failing record is searched for, half of those that it is among;
  /// else those that are tried by themselves, or all.
  [[nodiscard]] record_batch next() const {
    if (suspects_ > 0) return records_.slice(0, std::max<std::size_t>(suspects_ / 2, 1));
    return separate_ > 0 ? records_.slice(0, separate_) : records_;
  }
  /// Some record among the first `count` fails.
  void narrow(std::size_t count) noexcept { suspects_ = count; }
  /// The first `count` records are complete.
  void complete(std::size_t count) {
    const std::size_t tried = std::min(count, attempts_.size());
    attempts_.erase(attempts_.begin(), attempts_.begin() + static_cast<std::ptrdiff_t>(tried));
    suspects_ -= std::min(count, suspects_);
    separate_ -= std::min(count, separate_);
    records_ = records_.slice(count, records_.size());
  }
  /// The first `count` records are complete, except those at `indices`. These are tried next, by
  /// themselves.
  void keep(std::size_t count, std::vector<std::size_t> indices) {
    struct selection {
      std::vector<record> records;
      record_batch source;  // keeps alive what the records are views of
    };
    separate_ = indices.size();
    suspects_ = 0;
    for (std::size_t index = count; index < records_.size(); ++index) indices.push_back(index);
    const auto kept = std::make_shared<selection>(selection{{}, batch_});
    kept->records.reserve(indices.size());
    std::vector<failed_attempts> attempts;
    for (const std::size_t index : indices) {
      kept->records.push_back(records_[index]);
      if (index >= attempts_.size()) continue;
      attempts.resize(kept->records.size());
      attempts.back() = std::move(attempts_[index]);
    }
    records_ = record_batch(kept->records, kept, batch_.millis_behind_latest());
    attempts_ = std::move(attempts);
  }
  /// All records up to here are complete; std::nullopt when not even the first is.
  [[nodiscard]] std::optional<sequence_position> watermark() const {
    if (records_.empty()) return batch_.back().position();
    const sequence_position first = records_.front().position();
    const auto incomplete =
        std::partition_point(batch_.begin(), batch_.end(),
                             [&](const record& record) { return record.position() < first; });
    if (incomplete == batch_.begin()) return std::nullopt;
    return std::prev(incomplete)->position();
  }

  /// Makes room for the failed attempts of all records up to this one. A reference that it has
  /// returned is valid until it is called for a later record.
  [[nodiscard]] failed_attempts& attempts_at(std::size_t index) {
    if (attempts_.size() <= index) attempts_.resize(index + 1);
    return attempts_[index];
  }
  [[nodiscard]] const failed_attempts& attempts_of_first() const noexcept {
    static const failed_attempts no_attempts;
    return attempts_.empty() ? no_attempts : attempts_.front();
  }

 private:
  record_batch batch_;
  record_batch records_;
  std::size_t suspects_ = 0;               // so many at the beginning have a failing one among them
  std::size_t separate_ = 0;               // so many at the beginning are tried by themselves
  std::vector<failed_attempts> attempts_;  // of the first records; later ones were not tried
};

/// What a handler threw: the exception, and the batch_failure that names records, if it is one.
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

/// The index of the record at the position; the batch's size when no record has it.
std::size_t index_of(const sequence_position& position, const record_batch& batch) {
  const auto found = std::partition_point(batch.begin(), batch.end(), [&](const record& record) {
    return record.position() < position;
  });
  const bool is_there = found != batch.end() && found->position() == position;
  return static_cast<std::size_t>((is_there ? found : batch.end()) - batch.begin());
}

/// A record that a batch_failure names.
struct named_record {
  std::size_t index;
  std::exception_ptr cause;
};

/// The records of the part that the error names, in order.
std::vector<named_record> named_in(const record_batch& part, const batch_error& error) {
  std::vector<named_record> named;
  if (!error.reported) return named;
  for (const batch_failure::failed& failed : error.reported->records()) {
    const std::size_t index = index_of(failed.position, part);
    if (index == part.size()) continue;
    named.push_back(
        {index, failed.cause ? failed.cause : std::make_exception_ptr(*error.reported)});
  }
  const auto before = [](const auto& a, const auto& b) { return a.index < b.index; };
  const auto same = [](const auto& a, const auto& b) { return a.index == b.index; };
  std::stable_sort(named.begin(), named.end(), before);
  named.erase(std::unique(named.begin(), named.end(), same), named.end());
  return named;
}

/// For how long the handler is not called after this verdict.
milliseconds pause_after(const processing::verdict& verdict) {
  if (std::holds_alternative<verdicts::complete>(verdict)) return milliseconds(0);
  const auto* const retry = std::get_if<verdicts::retry>(&verdict);
  return retry != nullptr ? retry->delay : milliseconds::max();
}

/// Options with all limits set.
struct batch_limits {
  std::size_t records;
  std::uint64_t bytes;   // of data
  std::uint64_t memory;  // of gathered records
  milliseconds linger;
  kclxx::order order;
  /// Whether a batch of the daemon's may be divided or wait.
  [[nodiscard]] bool are_any() const noexcept {
    constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();
    return linger.count() > 0 || records < no_limit || bytes < no_limit;
  }
};

batch_limits valid(const batch_options& options) {
  const auto require = [](bool holds, const char* problem) {
    if (!holds) throw std::invalid_argument(std::string("batch_options: ") + problem);
  };
  require(options.max_records != 0, "max_records is 0");
  require(options.max_bytes != 0, "max_bytes is 0");
  require(options.linger >= milliseconds(0), "linger is negative");
  constexpr auto no_limit = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t max_memory = std::uint64_t{64} << 20;
  return {options.max_records.value_or(std::numeric_limits<std::size_t>::max()),
          options.max_bytes.value_or(no_limit), std::max(max_memory, options.max_bytes.value_or(0)),
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

  void process_records(record_batch batch, const checkpointer&) override {
    if (!limits_.are_any()) return hand_over(std::move(batch));
    // A daemon that repeats a delivery (P69) sends records that are gathered already.
    if (!gathered_.empty()) batch = batch.after(gathered_.last_position());
    const auto delivered = shard_.now();
    for (std::size_t offset = 0; offset < batch.size();) {
      const auto [count, is_closed] = next_part(batch, offset);
      record_batch part = batch.slice(offset, count);
      offset += count;
      if (is_closed && gathered_.empty()) {
        oldest_delivery_ = delivered;
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
    bool is_closed;  // it is handed over without further records
  };
  /// How many of the records from `offset` on go with the gathered ones. A record that is larger
  /// than the limit goes by itself.
  [[nodiscard]] part_of_batch next_part(const record_batch& batch, std::size_t offset) const {
    const std::size_t remaining = batch.size() - offset;
    const std::size_t max_count = std::min(remaining, limits_.records - gathered_.records());
    const bool may_gather = limits_.linger.count() > 0;
    std::uint64_t bytes = gathered_.data_bytes();
    std::uint64_t memory = gathered_.bytes();
    std::size_t count = 0;
    for (; count < max_count && bytes < limits_.bytes; ++count) {
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
    return {count, is_full || count < remaining || !may_gather};
  }

  void gather(const record_batch& part, time_point delivered) {
    if (gathered_.empty()) oldest_delivery_ = delivered;
    gathered_.add(part);
    observe_in_flight({});
  }

  void hand_over_gathered() {
    if (!gathered_.empty()) hand_over(gathered_.take());
  }

  /// A timer that has started runs on when its records are handed over before. It then looks at
  /// the records that were gathered since, and starts again for them.
  void look_at_linger() {
    if (gathered_.empty()) return;
    const auto due = oldest_delivery_ + limits_.linger;
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
        gathered_.records() + handed_over.size(), gathered_.data_bytes(), {}, watermark_};
    for (const record& record : handed_over) event.bytes += record.data().size();
    if (event.records > 0) event.oldest = oldest_delivery_;
    service_->observe(std::move(event));
  }

  /// Returns when the records are complete, or a stop is requested.
  void hand_over(record_batch batch) {
    observe_in_flight(batch);
    remaining_records remaining(std::move(batch));
    while (!remaining.empty() && !stop_.stop_requested()) {
      const record_batch part = remaining.next();
      const auto error = run(part, remaining.attempts_of_first());
      // A handler that returns or throws after a stop has neither completed its records nor failed.
      if (stop_.stop_requested()) break;
      if (!error) {
        succeed(remaining, part.size());
      } else if (const auto named = named_in(part, *error); !named.empty()) {
        on_named_failure(remaining, part, named, error->reported->last_tried());
      } else {
        on_unnamed_failure(remaining, part.size(), error->cause);
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

  void succeed(remaining_records& remaining, std::size_t count) {
    failures_.on_success();
    const int failed = remaining.attempts_of_first().count;
    if (failed > 0) failures_.on_retry_success(remaining.at(0).position(), failed + 1);
    complete(remaining, count);
  }

  void complete(remaining_records& remaining, std::size_t count) {
    remaining.complete(count);
    request_checkpoint(remaining);
  }

  void request_checkpoint(const remaining_records& remaining) {
    const auto position = remaining.watermark();
    if (!position) return;
    watermark_ = position;
    service_->async_checkpoint(*position, {});
  }

  /// The first `count` records failed, and the error does not tell which of them.
  void on_unnamed_failure(remaining_records& remaining, std::size_t count,
                          const std::exception_ptr& thrown) {
    const error_kind kind = failures_.kind_of(thrown);
    if (kind == error_kind::lease_gone) std::rethrow_exception(thrown);
    if (kind != error_kind::outage) remaining.narrow(count);
    // An outage is no record's fault: the first record stands for all, in the log and the circuit.
    if (kind != error_kind::outage && count > 1) return;
    const auto verdict = failures_.decide(remaining.at(0), remaining.attempts_at(0), thrown);
    if (failures_.is_complete_after(verdict)) complete(remaining, 1);
  }

  /// The error names the records of the part that failed.
  void on_named_failure(remaining_records& remaining, const record_batch& part,
                        const std::vector<named_record>& named,
                        const std::optional<sequence_position>& last_tried) {
    static_cast<void>(remaining.attempts_at(named.back().index));  // the next calls move nothing
    std::vector<processing::failure> failures;
    for (const named_record& failed : named) {
      failures.push_back(
          {&remaining.at(failed.index), &remaining.attempts_at(failed.index), failed.cause});
    }
    const auto incomplete = incomplete_in(part, named, last_tried);
    const bool has_completed = incomplete.size() < part.size();
    if (has_completed && last_tried) failures_.on_success();  // before it stopped at a failure
    failures_.judge(failures, has_completed && !last_tried);
    failures_.park(failures);
    if (stop_.stop_requested()) return;
    std::vector<std::size_t> again;
    processing::verdict of_call = verdicts::complete{};
    auto next_failure = failures.begin();
    for (const auto& [index, is_named] : incomplete) {
      const auto* const verdict = is_named ? &(next_failure++)->verdict : nullptr;
      if (!verdict || !std::holds_alternative<verdicts::complete>(*verdict)) again.push_back(index);
      if (verdict && pause_after(*verdict) > pause_after(of_call)) of_call = *verdict;
    }
    remaining.keep(part.size(), std::move(again));
    request_checkpoint(remaining);
    static_cast<void>(failures_.is_complete_after(of_call));  // waits, or throws
  }

  struct incomplete_record {
    std::size_t index;
    bool is_named;
  };
  /// The named records, those that were not tried and, with order::key, the later records of the
  /// named ones' keys.
  [[nodiscard]] std::vector<incomplete_record> incomplete_in(
      const record_batch& part, const std::vector<named_record>& named,
      const std::optional<sequence_position>& last_tried) const {
    std::vector<incomplete_record> incomplete;
    std::unordered_set<std::optional<std::string_view>> keys;
    auto next_named = named.begin();
    for (std::size_t index = 0; index < part.size(); ++index) {
      const std::optional<std::string_view> key = part[index].partition_key();
      const bool is_named = next_named != named.end() && next_named->index == index;
      if (is_named) ++next_named;
      if (is_named && limits_.order == order::key) keys.insert(key);
      const bool was_tried = !last_tried || part[index].position() <= *last_tried;
      if (is_named || !was_tried || keys.contains(key)) incomplete.push_back({index, is_named});
    }
    return incomplete;
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
  time_point oldest_delivery_{};  // of the records in flight
  std::optional<shard_context::timer_id> timer_;
  std::optional<sequence_position> watermark_;
};

}  // namespace

processor_factory batches(batch_handler handler, failure_policy policy, batch_options options) {
  return processor_factory::valid_or_not([&]() -> processor_factory {
    detail::require_function(handler);
    return [handler = std::move(handler), policy = processing::checked(std::move(policy)),
            limits = valid(options)](const shard_context& shard) {
      return std::make_unique<batches_processor>(handler, policy, limits, shard);
    };
  });
}

}  // namespace kclxx

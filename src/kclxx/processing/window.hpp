// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <kclxx/observer.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

#include "processing/failure_handling.hpp"

namespace kclxx::processing {

/// The number of a record in the order of delivery, from 0 on.
using ordinal = std::uint64_t;

/// Names one attempt of one record; never used again.
struct ticket {
  ordinal record_number = 0;
  int attempt = 1;
};

/// What is reported of an attempt that is stuck.
struct stuck_report {
  observer::handlers_stuck event;
  std::string record;
  std::string text;
};

/// The records of a shard in `parallel`, from the oldest that is not complete to the newest: which
/// state each is in, which one a runner takes next, and which of them are stuck.
/// docs/architecture.md has the states, and who ends each. The batches of these records are kept
/// alive.
///
/// Pure. Thread safety: none.
class window {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  enum class state {
    waits_for_key,
    ready,
    waits_for_retry,
    with_handler,
    failed,  ///< what becomes of it is to be decided
    parking,
    complete,
  };
  /// An attempt that begins.
  struct begun {
    ticket name;
    const kclxx::record* record;
    record_batch batch;  ///< of an async_record_handler's, which may keep the record
  };

  window(const parallel_options& options, bool is_async);

  /// Takes records of the batch in, from `offset` on, until the window is full. A record that is
  /// larger than the window is taken in when the window is empty. Returns how many. `keys` are
  /// those of all records of the batch, and are moved from; empty: the partition keys. Records
  /// without a key are one key.
  std::size_t admit(const record_batch& batch, std::size_t offset, time_point now,
                    std::span<std::string> keys = {});
  /// Whether a record of so many bytes fits, and at least an eighth of the window is free or
  /// nothing is ready: then it is worth while to admit more.
  [[nodiscard]] bool wants_more(std::uint64_t next_bytes) const noexcept;

  [[nodiscard]] std::size_t ready() const noexcept { return new_.size() + due_.size(); }
  /// Whether a record is ready, and has a lane. A runner that decides and parks has one; with an
  /// async_record_handler only handlers have.
  [[nodiscard]] bool can_begin() const noexcept {
    return ready() > 0 && (is_async_ ? running_ : attempts_.size()) < lanes_;
  }
  /// Precondition: can_begin(). `probe`: as which the circuit has admitted the attempt.
  [[nodiscard]] begun begin(time_point now, circuit::probe_id probe = circuit::no_probe);
  /// Makes the failed records ready that are due.
  void make_due_ready(time_point now);
  /// When the next of them is due.
  [[nodiscard]] std::optional<time_point> next_retry() const;

  /// False when the attempt has ended.
  [[nodiscard]] bool is_with_handler(const ticket& one) const noexcept {
    return find(one) != nullptr && entry_of(one.record_number).at == state::with_handler;
  }
  // Precondition of the following: the attempt was neither completed, retried nor left.
  [[nodiscard]] const record& at(const ticket& one) const {
    return *entry_of(one.record_number).record;
  }
  [[nodiscard]] time_point began(const ticket& one) const { return find(one)->began; }
  void complete(const ticket& one);
  /// Returns the record's failed attempts before this one. Who decides on it may change them until
  /// the attempt is completed, retried or left.
  [[nodiscard]] failed_attempts& fail(const ticket& one, time_point now) {
    return failures_of(go_on(one, state::failed, now));
  }
  void begin_parking(const ticket& one, time_point now) { go_on(one, state::parking, now); }
  void retry(const ticket& one, time_point due);
  /// The session ends: another child has it next.
  void leave(const ticket& one) { end_attempt(one, state::waits_for_retry); }
  /// The handler makes progress. Without effect when the attempt has ended.
  void touch(const ticket& one, time_point now) noexcept;

  /// Handlers that run.
  [[nodiscard]] std::size_t running() const noexcept { return running_; }
  /// How many attempts were reported as stuck, and for how long.
  [[nodiscard]] std::size_t stuck() const noexcept { return stuck_; }
  [[nodiscard]] observer::handlers_stuck stuck(time_point now) const;
  /// When an attempt that begins now would be stuck.
  [[nodiscard]] std::optional<time_point> stuck_at(time_point now) const noexcept;
  [[nodiscard]] std::optional<time_point> next_stuck() const noexcept;
  /// The reports that are due. The next one is due after twice the time of the last.
  [[nodiscard]] std::vector<stuck_report> take_stuck(time_point now);

  /// The number of the oldest record that is not complete, or of the next one to be admitted.
  [[nodiscard]] ordinal first() const noexcept { return first_; }
  [[nodiscard]] bool is_empty() const noexcept { return entries_.empty(); }
  /// Precondition of these two: !is_empty().
  [[nodiscard]] const record& oldest() const { return *entries_.front().record; }
  [[nodiscard]] time_point oldest_delivery() const { return spans_.front().delivered; }
  /// Records that are not complete, and their bytes of data.
  [[nodiscard]] std::size_t incomplete() const noexcept { return incomplete_; }
  [[nodiscard]] std::uint64_t incomplete_bytes() const noexcept { return incomplete_bytes_; }
  /// The position up to which all records are complete; std::nullopt before the first. It never
  /// falls.
  [[nodiscard]] std::optional<sequence_position> watermark() const;
  /// The batches of which all records are complete. Their memory is their owner's: it is given back
  /// where nothing is locked.
  [[nodiscard]] std::vector<record_batch> take_passed() noexcept {
    return std::exchange(passed_batches_, {});
  }

 private:
  /// The newest of each key's incomplete records.
  using key_map = std::unordered_map<std::optional<std::string>, ordinal>;
  struct entry {
    const kclxx::record* record;
    key_map::const_pointer key = nullptr;  // of order::key
    ordinal next_of_key = 0;               // 0: none
    std::unique_ptr<failed_attempts> failures{};
    std::size_t place = 0;  // in attempts_, from with_handler to parking
    state at = state::ready;
  };
  /// Of a record that a handler has, that has failed or is being parked.
  struct attempt {
    ticket name;
    time_point began;
    time_point touched;  // the stuck clock began
    int reports = 0;
  };
  struct span {
    ordinal first;
    record_batch records;
    time_point delivered;
    [[nodiscard]] ordinal end() const noexcept { return first + records.size(); }
  };
  using retry_time = std::pair<time_point, ordinal>;
  template <class Value>
  using smallest_first = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

  /// Beside those that are there. The first record always does.
  [[nodiscard]] bool fits(std::uint64_t next_bytes) const noexcept {
    return is_empty() || (entries_.size() < most_records_ && bytes_ + next_bytes <= most_bytes_);
  }
  [[nodiscard]] entry& entry_of(ordinal number) { return entries_[number - first_]; }
  [[nodiscard]] const entry& entry_of(ordinal number) const { return entries_[number - first_]; }
  /// Null when the attempt has ended.
  [[nodiscard]] const attempt* find(const ticket& one) const noexcept;
  [[nodiscard]] attempt& attempt_of(const ticket& one);
  entry& go_on(const ticket& one, state next, time_point now);
  entry& end_attempt(const ticket& one, state next);
  void change_state(entry& one, state next) noexcept;
  void forget_reports(attempt& reported) noexcept;
  [[nodiscard]] static failed_attempts& failures_of(entry& one);
  [[nodiscard]] ordinal take_ready(bool is_retry_first);
  void pass_front();
  [[nodiscard]] const record_batch& batch_of(ordinal number) const;
  [[nodiscard]] std::optional<time_point> next_report(const attempt& one) const noexcept;
  [[nodiscard]] std::string describe(ordinal number) const;

  const bool is_async_;
  const order order_;
  const std::size_t lanes_;
  const std::size_t most_records_;
  const std::uint64_t most_bytes_;
  const std::chrono::milliseconds stuck_after_;

  std::deque<entry> entries_;  // from first_ on
  ordinal first_ = 0;
  std::size_t incomplete_ = 0;
  std::uint64_t incomplete_bytes_ = 0;
  key_map keys_;
  smallest_first<ordinal> new_;         // ready, and not tried before
  std::deque<ordinal> due_;             // ready, and failed before
  smallest_first<retry_time> retries_;  // wait for their time
  bool was_retry_ = false;              // the last attempt that began

  std::vector<attempt> attempts_;
  std::size_t running_ = 0;   // of these
  std::size_t retrying_ = 0;  // of these, those of records that have failed before
  std::size_t stuck_ = 0;     // of these, those with reports

  std::deque<span> spans_;
  std::vector<record_batch> passed_batches_;
  std::uint64_t bytes_ = 0;                  // of the spans
  std::optional<sequence_position> passed_;  // the last record of the spans that are gone
};

}  // namespace kclxx::processing

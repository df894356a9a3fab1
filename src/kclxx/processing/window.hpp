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

/// Names one attempt of one record, and is never used again.
struct attempt_id {
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
    failed,  ///< the verdict on it is to be found
    parking,
    complete,
  };
  /// An attempt that begins.
  struct begun_attempt {
    attempt_id id;
    const kclxx::record* record;
    record_batch batch;  ///< empty but for an async_record_handler, which may keep the record
  };

  window(const parallel_options& options, bool is_async);

  /// Takes records of the batch in, from `offset` on, until the window is full. Returns how many.
  /// `keys` are those of all records of the batch, and are moved from; when there are none, the
  /// partition keys are taken. Records without a key have the same key.
  std::size_t admit(const record_batch& batch, std::size_t offset, time_point now,
                    std::span<std::string> keys = {});
  /// Whether it is worth while to admit more: there is room for a record of this size, and at least
  /// an eighth of the window is free or nothing is ready.
  [[nodiscard]] bool wants_more(std::uint64_t record_bytes) const noexcept;

  [[nodiscard]] std::size_t ready() const noexcept {
    return ready_first_attempts_.size() + ready_retries_.size();
  }
  /// Whether a record is ready, and a lane is free. A runner that decides on a failure, or parks,
  /// has a lane, too; with an async_record_handler only handlers have.
  [[nodiscard]] bool can_begin() const noexcept {
    return ready() > 0 && (is_async_ ? handlers_ : attempts_.size()) < lanes_;
  }
  /// Precondition: can_begin(). `probe`: as which the circuit has admitted the attempt.
  [[nodiscard]] begun_attempt begin(time_point now, circuit::probe_id probe = circuit::no_probe);
  /// Makes the failed records ready whose time has come.
  void make_due_ready(time_point now);
  /// When the next failed record becomes ready.
  [[nodiscard]] std::optional<time_point> next_retry() const;

  /// False when the attempt has ended, or its handler has.
  [[nodiscard]] bool is_with_handler(const attempt_id& id) const noexcept {
    return find(id) != nullptr && entry_of(id.record_number).state == state::with_handler;
  }
  // Precondition of the following: the attempt has not ended. complete(), retry() and cancel() end
  // it.
  [[nodiscard]] const record& record_of(const attempt_id& id) const {
    return *entry_of(id.record_number).record;
  }
  [[nodiscard]] time_point began(const attempt_id& id) const { return find(id)->began; }
  void complete(const attempt_id& id);
  /// The handler has failed. Returns the record's failed attempts before this one, which belong to
  /// the caller until the attempt ends.
  [[nodiscard]] failed_attempts& fail(const attempt_id& id, time_point now) {
    return failures_of(enter(id, state::failed, now));
  }
  void begin_parking(const attempt_id& id, time_point now) { enter(id, state::parking, now); }
  void retry(const attempt_id& id, time_point due);
  /// The session ends. The record stays incomplete, so that another child gets it.
  void cancel(const attempt_id& id) { end_attempt(id, state::waits_for_retry); }
  /// The handler makes progress. Without effect when the attempt has ended.
  void touch(const attempt_id& id, time_point now) noexcept;

  /// How many handlers run.
  [[nodiscard]] std::size_t handlers() const noexcept { return handlers_; }
  /// How many attempts were reported as stuck, and have made no progress since.
  [[nodiscard]] std::size_t stuck() const noexcept { return stuck_; }
  /// How many that are, and for how long the oldest of them has run.
  [[nodiscard]] observer::handlers_stuck stuck_event(time_point now) const;
  /// No attempt is to be reported as stuck before this time.
  [[nodiscard]] const std::optional<time_point>& next_stuck() const noexcept { return next_stuck_; }
  /// The reports that are due. The next one on an attempt is due after twice the time of the last.
  [[nodiscard]] std::vector<stuck_report> take_stuck(time_point now);

  /// The number of the oldest record that is not complete, or of the next one to be admitted.
  [[nodiscard]] ordinal first() const noexcept { return first_; }
  [[nodiscard]] bool is_empty() const noexcept { return entries_.empty(); }
  /// Precondition of these two: !is_empty().
  [[nodiscard]] const record& oldest() const { return *entries_.front().record; }
  [[nodiscard]] time_point oldest_delivery() const { return spans_.front().delivered; }
  /// The number of records that are not complete, and their bytes of data.
  [[nodiscard]] std::size_t incomplete() const noexcept { return incomplete_; }
  [[nodiscard]] std::uint64_t incomplete_bytes() const noexcept { return incomplete_bytes_; }
  /// The position up to which all records are complete; std::nullopt before the first. It never
  /// falls.
  [[nodiscard]] std::optional<sequence_position> watermark() const;
  /// Takes the batches of which all records are complete. To destroy them may run user code, so it
  /// is done where nothing is locked.
  [[nodiscard]] std::vector<record_batch> take_passed() noexcept {
    return std::exchange(passed_batches_, {});
  }

 private:
  /// The newest incomplete record of each key.
  using key_map = std::unordered_map<std::optional<std::string>, ordinal>;
  struct entry {
    const kclxx::record* record;
    key_map::const_pointer key = nullptr;  // null without order::key
    ordinal next_of_key = 0;               // 0: none waits for this record
    std::unique_ptr<failed_attempts> failures{};
    std::size_t attempt_index = 0;  // in attempts_, in the states from with_handler to parking
    window::state state = window::state::ready;
  };
  /// A record that a handler has, that has failed or is being parked.
  struct attempt {
    attempt_id id;
    time_point began;          // its present state
    time_point last_progress;  // the stuck clock began
    int reports = 0;           // how often it was reported as stuck
  };
  /// Records of one delivered batch.
  struct span {
    ordinal first;
    record_batch records;
    time_point delivered;
    [[nodiscard]] ordinal end() const noexcept { return first + records.size(); }
  };
  using retry_time = std::pair<time_point, ordinal>;
  template <class Value>
  using smallest_first = std::priority_queue<Value, std::vector<Value>, std::greater<>>;

  /// Whether a record of this size fits beside the records in the window. An empty window takes any
  /// record.
  [[nodiscard]] bool has_room_for(std::uint64_t record_bytes) const noexcept {
    return is_empty() || (entries_.size() < max_records_ && bytes_ + record_bytes <= max_bytes_);
  }
  [[nodiscard]] entry& entry_of(ordinal number) { return entries_[number - first_]; }
  [[nodiscard]] const entry& entry_of(ordinal number) const { return entries_[number - first_]; }
  /// Null when the attempt has ended.
  [[nodiscard]] const attempt* find(const attempt_id& id) const noexcept;
  /// Precondition: the attempt has not ended.
  [[nodiscard]] attempt& attempt_of(const attempt_id& id);
  entry& enter(const attempt_id& id, state next, time_point now);
  entry& end_attempt(const attempt_id& id, state next);
  void change_state(entry& changed, state next) noexcept;
  void start_stuck_clock(attempt& watched, time_point now) noexcept;
  void forget_reports(attempt& reported) noexcept;
  [[nodiscard]] static failed_attempts& failures_of(entry& failed);
  [[nodiscard]] ordinal take_ready(bool is_retry_first);
  void pass_front();
  [[nodiscard]] const record_batch& batch_of(ordinal number) const;
  [[nodiscard]] std::optional<time_point> next_report(const attempt& watched) const noexcept;
  [[nodiscard]] std::string describe(ordinal number) const;

  const bool is_async_;
  const order order_;
  const std::size_t lanes_;
  const std::size_t max_records_;
  const std::uint64_t max_bytes_;
  const std::chrono::milliseconds stuck_after_;

  std::deque<entry> entries_;  // the record with number first_, and those after it
  ordinal first_ = 0;
  std::size_t incomplete_ = 0;
  std::uint64_t incomplete_bytes_ = 0;
  key_map keys_;
  smallest_first<ordinal> ready_first_attempts_;
  std::deque<ordinal> ready_retries_;
  smallest_first<retry_time> waiting_retries_;
  bool was_retry_ = false;  // the last attempt that began

  std::vector<attempt> attempts_;
  std::size_t handlers_ = 0;              // attempts whose handler runs
  std::size_t retries_ = 0;               // attempts of records that have failed before
  std::size_t stuck_ = 0;                 // attempts with reports
  std::optional<time_point> next_stuck_;  // not later than the next report

  std::deque<span> spans_;  // of the records from first_ on
  std::vector<record_batch> passed_batches_;
  std::uint64_t bytes_ = 0;                  // of the spans
  std::optional<sequence_position> passed_;  // the last record of the spans that are gone
};

}  // namespace kclxx::processing

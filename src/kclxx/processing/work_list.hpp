// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <list>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include <kclxx/observer.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/record_batch.hpp>

#include "processing/failure_handling.hpp"
#include "processing/handlers_in_progress.hpp"
#include "processing/record_queue.hpp"

namespace kclxx::processing {

/// What a runner of the dispatcher's does next: it calls the handler, or decides on a failure.
struct work {
  attempt_ticket ticket{};
  std::exception_ptr failed{};  // null: call the handler
  const kclxx::record* record = nullptr;
  record_batch batch{};  // of an async_record_handler's
  int attempt = 1;
  record_queue::time_point began{};
  record_queue::time_point ended{};  // of an async_record_handler's that has failed
};

/// What is reported of a handler that is stuck.
struct stuck_report {
  observer::handlers_stuck event;
  std::string record;
  bool is_parking;            // the parking lot has it, not a handler
  std::string oldest_record;  // that is not complete

  [[nodiscard]] std::string text() const;
};

/// The work on the records of one shard: which of them a runner takes next, in which attempt, and
/// which failures are to be decided on.
///
/// Pure. Thread safety: none.
class work_list {
 public:
  using time_point = record_queue::time_point;

  work_list(const parallel_options& options, bool is_async);

  [[nodiscard]] record_queue& queue() noexcept { return queue_; }
  [[nodiscard]] const completion_window& window() const noexcept { return queue_.window(); }
  [[nodiscard]] handlers_in_progress& handlers() noexcept { return handlers_; }
  /// How many runners there is work for, besides these.
  [[nodiscard]] std::size_t runners_wanted(std::size_t runners) const;

  /// Whether take() has a handler called.
  [[nodiscard]] bool is_for_handler() const noexcept {
    return failed_.empty() && has_lane() && queue_.ready() > 0;
  }
  /// `probe`: what the circuit has admitted, if it is for a handler.
  [[nodiscard]] std::optional<work> take(time_point now,
                                         circuit::probe_id probe = circuit::no_probe);
  /// Null when the attempt has ended.
  [[nodiscard]] const handlers_in_progress::attempt* running(const attempt_ticket& ticket) noexcept;

  /// How an attempt ends. Precondition of the first three: it was not removed.
  void complete(const attempt_ticket& ticket);
  void retry(const attempt_ticket& ticket, failed_attempts attempts, time_point due);
  void remove(const attempt_ticket& ticket) { handlers_.remove(ticket); }
  /// A runner decides on this failure. Precondition: running().
  void fail(const attempt_ticket& ticket, std::exception_ptr exception, time_point now);
  /// The same, of a handler that threw. If its completion was reported as failed before, `thrown`
  /// and that reason are exchanged. False if it was reported as complete.
  bool fail_thrown(const work& thrown_by, std::exception_ptr& thrown, time_point now);

  /// The decision on a failure begins; these are the record's attempts before it. Precondition: it
  /// was not removed.
  [[nodiscard]] failed_attempts begin_decision(const attempt_ticket& ticket);
  /// The decision is to park it. Precondition: it was not removed.
  void begin_parking(const attempt_ticket& ticket, time_point now) {
    handlers_.begin_parking(ticket, now);
  }

  /// How many handlers are stuck, and for how long.
  [[nodiscard]] observer::handlers_stuck stuck(time_point now) const;
  /// std::nullopt when it was removed, or is no longer stuck.
  [[nodiscard]] std::optional<stuck_report> report(const attempt_ticket& ticket, time_point now);
  void clear();
  /// What is no longer needed, and is destroyed without a lock: its destructors are user code.
  struct dropped {
    std::vector<record_batch> batches;
    std::list<work> failed;
  };
  // Each change of the dispatcher's makes some under its mutex: that must not allocate.
  static_assert(std::is_nothrow_default_constructible_v<dropped> &&
                std::is_nothrow_move_constructible_v<dropped>);
  [[nodiscard]] dropped take_dropped() noexcept {
    return {queue_.take_passed(), std::exchange(dropped_, {})};
  }

 private:
  /// A runner that decides and parks has a lane; with an async_record_handler no handler has.
  [[nodiscard]] bool has_lane() const {
    return (is_async_ ? handlers_.running() : handlers_.size()) < lanes_;
  }
  [[nodiscard]] int attempt_of(ordinal number) const;
  [[nodiscard]] std::string describe(ordinal number) const;

  const bool is_async_;
  const std::size_t lanes_;
  record_queue queue_;
  handlers_in_progress handlers_;
  std::unordered_map<ordinal, failed_attempts> attempts_;  // of records that have failed
  bool was_retry_ = false;                                 // the last attempt that began
  bool was_new_probe_ = false;                             // the same
  std::list<work> failed_;  // of an async_record_handler: to be decided on
  std::list<work> dropped_;
};

}  // namespace kclxx::processing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

#include "simulation/run.hpp"

namespace kclxx::simulation {

/// One record of the shard: what its handler does with it, and what has become of it.
struct planned_record {
  enum class end { none, succeeded, parked, skipped };

  std::string sequence_number;
  std::uint64_t sub_sequence_number;
  std::string key;
  std::string data;  // its number
  int failures;      // still to come; below zero: it always fails
  bool is_permanent;
  std::chrono::milliseconds time;  // that the handler takes

  bool is_good = true;     // it fails only when all records do
  bool was_ended = false;  // by any child
  // What follows is about the present child.
  end how = end::none;
  int attempts = 0;  // begun
  int failed = 0;    // but in an outage
  int failed_parkings = 0;
  std::optional<std::chrono::steady_clock::time_point> arrived{};
  bool has_failed = false;
  bool is_in_progress = false;
  bool was_left = false;  // by its handler, after the stop token had stopped
  bool is_parked_in_log = false;
  bool is_repeated = false;  // by the daemon, to this child

  [[nodiscard]] sequence_position position() const {
    return sequence_position(sequence_number, sub_sequence_number);
  }
  [[nodiscard]] record::fields fields() const {
    return {data, key, sequence_number, sub_sequence_number, {}};
  }
};

/// The records of one shard, and the invariants about them.
class stream {
 public:
  /// `is_crowded`: half of the keys fail for long.
  stream(random_source& random, std::size_t records, bool keeps_order, bool is_crowded);

  [[nodiscard]] planned_record& of(const record& event) { return records_.at(number_of(event)); }
  /// The next records to be delivered, at most so many.
  std::vector<record::fields> take(std::size_t count);
  [[nodiscard]] std::size_t size() const { return records_.size(); }
  [[nodiscard]] bool is_all_delivered() const { return delivered_ == records_.size(); }
  /// Whether one of those that the present child was given is so.
  template <class Predicate>
  [[nodiscard]] bool has(Predicate predicate) const {
    return std::any_of(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(delivered_),
                       predicate);
  }

  /// How many records the present child has, from the oldest that is not complete on.
  [[nodiscard]] std::size_t held(const sequence_position& persisted) const;

  // What happens to a record. Errors: violation.
  /// The present child has it.
  void arrive(const record& event, std::chrono::steady_clock::time_point now) {
    of(event).arrived = now;
  }
  /// It is complete, and is delivered once more.
  void repeat(const record& event, std::chrono::steady_clock::time_point now);
  void begin(const record& event, bool is_first);
  /// A handler side by side with others begins: while new records are ready, failed ones have at
  /// most half of the lanes, and do not follow each other; none begins while the circuit is open.
  /// Precondition: the window has room for all records.
  void require_new_work(const record& event, std::size_t lanes, bool is_circuit_open);
  /// At least so many records of the present child have failed.
  void require_failed(std::int64_t records) const;
  /// No more records than lanes are with handlers.
  void require_lane(std::size_t lanes) const;
  void interrupt(const record& event) { of(event).is_in_progress = false; }
  /// Its handler returns or throws after the stop token has stopped.
  void leave(const record& event);
  void fail(const record& event, int most_attempts);
  /// The lot is not there: whichever record was to be parked is tried again.
  void fail_preparation() { ++failed_preparations_; }
  void end(const record& event, planned_record::end ending);
  /// So many more good records may be given up.
  void allow_given_up(int records) { may_be_given_up_ += records; }
  /// A line of the child's log.
  void read_log(const std::string& text);
  /// An attempt is reported to observers.
  void read_attempt(const sequence_position& position, int attempt);

  /// No record of the present child's waits for a handler after the linger. Errors: violation.
  void require_handed_over(std::chrono::steady_clock::time_point now,
                           std::chrono::milliseconds linger) const;
  /// All earlier records of its key are complete. Errors: violation.
  void require_order(const record& event) const { require_order(number_of(event)); }

  /// The child is gone, or will be; another one reads from what is persisted.
  void end_child();
  /// Everything up to here is persisted.
  void check(const sequence_position& persisted) const;

 private:
  static std::size_t number_of(const record& event) {
    return static_cast<std::size_t>(std::stoull(std::string(event.data())));
  }
  planned_record& at(const std::string& position);
  static void begin_anew(planned_record& planned);
  void require_order(std::size_t number) const;
  /// A record whose first attempt can begin; null: there is none.
  [[nodiscard]] const planned_record* ready_for_first_attempt() const;

  std::vector<planned_record> records_;
  std::size_t delivered_ = 0;
  int may_be_given_up_ = 0;
  int failed_preparations_ = 0;  // of the present child
  bool was_retry_ = false;
  bool keeps_order_;
};

}  // namespace kclxx::simulation

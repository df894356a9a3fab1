// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include <kclxx/observer.hpp>
#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

#include "base/arrival_time.hpp"

namespace kclxx::driver {

/// Finds out whether records may have left the stream between the stored position and the first
/// record that is delivered. The KCL does not tell: it reads on at the oldest record. Sequence
/// numbers have gaps by themselves, so only times can show it:
///
/// - A position that is younger than the retention proves that nothing is lost.
/// - If it is older, records are lost if any arrived after it and have left the stream since. The
///   first record shows how likely that is. If it is about as old as the retention, the worker
///   was away for that long. If it is much younger, the shard had no records for most of the
///   retention, and the position is probably old for that reason. If it is about as old as the
///   position, the stream keeps records for longer than is assumed.
///
/// Thread safety: none.
class gap_detector {
 public:
  explicit gap_detector(std::optional<std::chrono::milliseconds> retention)
      : retention_(retention) {}

  /// The worker gets the lease, with this position.
  void start(const std::optional<sequence_position>& position,
             std::chrono::system_clock::time_point now) {
    const auto arrival = position ? encoded_arrival(*position) : std::nullopt;
    if (arrival) stored_ = {*position, *arrival, floor<milliseconds>(now)};
  }

  /// std::nullopt for all records but the first, and if that suggests no gap.
  [[nodiscard]] std::optional<observer::gap_suspected> on_record(const record& delivered) {
    using std::chrono::hours;
    const auto stored = std::exchange(stored_, std::nullopt);
    const auto timestamp = delivered.approximate_arrival_timestamp();
    if (!stored) return std::nullopt;
    const auto arrival = timestamp ? std::optional(floor<milliseconds>(*timestamp))
                                   : encoded_arrival(delivered.position());
    if (!arrival) return std::nullopt;
    const milliseconds retention = retention_.value_or(hours(24));  // Kinesis' default
    const milliseconds stored_age = stored->lease_begin - stored->arrival;
    const milliseconds first_age = stored->lease_begin - *arrival;
    const bool is_nearest_to_retention = stored_age > retention && first_age >= retention / 2 &&
                                         first_age - retention <= stored_age - first_age;
    // An assumed retention must fit to an hour.
    const bool fits =
        retention_ || (stored_age > retention + hours(1) && first_age >= retention - hours(1) &&
                       first_age <= retention + hours(1));
    if (!is_nearest_to_retention || !fits) return std::nullopt;
    return observer::gap_suspected{stored->position, stored->arrival, *arrival,
                                   stored_age,       retention,       !retention_};
  }

 private:
  using milliseconds = std::chrono::milliseconds;
  /// The difference of any two dates that a daemon can send is representable.
  using date = std::chrono::sys_time<milliseconds>;
  struct stored_position {
    sequence_position position;
    date arrival;
    date lease_begin;
  };

  static std::optional<date> encoded_arrival(const sequence_position& position) {
    const auto seconds = detail::arrival_of(position.sequence_number());
    return seconds ? std::optional(date(std::chrono::seconds(*seconds))) : std::nullopt;
  }

  std::optional<milliseconds> retention_;
  /// What the first record is compared with, until that has come.
  std::optional<stored_position> stored_;
};

/// The message about it.
inline std::string text_of(const observer::gap_suspected& gap) {
  const auto text = [](std::chrono::milliseconds time) {
    using namespace std::chrono_literals;
    return time < 1h ? std::to_string(time / 1min) + " min" : std::to_string(time / 1h) + " h";
  };
  const bool is_assumed = gap.is_retention_assumed;
  return "records that arrived between " + detail::to_iso_8601(gap.stored_arrival) + " and " +
         detail::to_iso_8601(gap.first_arrival) + " may have been lost: the stored position " +
         to_string(gap.start_position) + " is " + text(gap.stored_age - gap.retention) +
         " older than " + (is_assumed ? "Kinesis' default retention of " : "the retention of ") +
         text(gap.retention) +
         (is_assumed ? "; if the stream keeps records for longer, set run_options::retention" : "");
}

}  // namespace kclxx::driver

// SPDX-License-Identifier: Apache-2.0
// The families of metrics, for those who keep them in a library of their own. To switch the
// built-in outputs on, see metrics_options in run_options.hpp.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include <kclxx/detail/export.hpp>
#include <kclxx/observer.hpp>

namespace kclxx {

/// Turns the events of one session into changes of its metrics, to store them elsewhere:
///
/// 1. Derive from it, and override add, set and observe to change a series in the other library.
/// 2. Derive from `observer`. In on_event keep one recorder for each event_source::shard, made at
///    lease_gained, and call its record().
/// 3. When you make a recorder, export metric::build_info with the value 1: record() never sets it.
///
/// Thread safety: none; events of one session come one at a time. With several sessions, lock what
/// has the recorders.
class KCLXX_EXPORT metrics_recorder {
 public:
  /// As Prometheus defines them.
  enum class metric_type { counter, gauge, histogram };

  /// One family, named by Prometheus' rules. docs/metrics.md lists them all.
  ///
  /// Units: the name has it: `_seconds`, `_timestamp_seconds` (since 1970, UTC), `_bytes`; the
  /// others are numbers of things.
  /// Thread safety: immutable.
  /// Lifetime: the views are of static memory.
  struct metric_family {
    /// The name in Prometheus, for instance "kclxx_records_total".
    std::string_view name;
    /// What it counts or measures, in one sentence.
    std::string_view help;
    /// How its value changes.
    metric_type type;
    /// The name and the unit in the CloudWatch line; empty if that line does not have this metric.
    std::string_view cloudwatch_name{};
    /// The unit in the CloudWatch line, for instance "Count".
    std::string_view cloudwatch_unit{};
    /// The label that it has besides application, stream and shard; empty: none.
    std::string_view label{};
    /// The values of that label that are there from the start; others may come.
    std::span<const std::string_view> label_values{};
  };

  /// The index of each family in families(), which has the help texts.
  enum class metric : std::size_t {
#define KCLXX_METRIC(enumerator, ...) enumerator,
#include <kclxx/detail/metric_families.inc>
  };

  /// All families, in the order of `metric`.
  /// Lifetime: static.
  [[nodiscard]] static std::span<const metric_family> families() noexcept;

  /// Upper bounds of the buckets of all histograms, in ascending order: those of OpenTelemetry's
  /// conventions. There is one more bucket, without a bound.
  /// Units: seconds.
  /// Lifetime: static.
  [[nodiscard]] static std::span<const double> histogram_buckets() noexcept;

  metrics_recorder() = default;
  metrics_recorder(const metrics_recorder&) = delete;
  metrics_recorder& operator=(const metrics_recorder&) = delete;
  /// Leaves what was stored elsewhere as it is.
  virtual ~metrics_recorder();

  /// Calls add, set and observe for what the event changes.
  /// Errors: std::bad_alloc, and what these throw; what they had changed before stays changed.
  /// Blocking: as long as these do.
  void record(const observer::event_source& source, const observer::shard_event& event);

 protected:
  /// Adds to a counter. `label_value` is not empty if the family has a label. It is valid only
  /// during the call.
  /// Units: bytes for metric::record_bytes, else a number of things.
  virtual void add(metric family, std::uint64_t amount, std::string_view label_value = {}) = 0;
  /// Sets a gauge.
  /// Units: those of the family's name; dates are seconds since 1970 (UTC), 0 for none.
  virtual void set(metric family, double value) = 0;
  /// Enters a value into a histogram.
  /// Units: seconds.
  virtual void observe(metric family, double seconds) = 0;

 private:
  void end_lease(std::string_view reason);
  void note(const observer::event_source& source, const observer::batch_delivered& event);
  void note(const observer::event_source& source, const observer::callback_ended& event);
  void note(const observer::event_source& source, const observer::checkpoint_answered& event);
  void note(const observer::event_source& source, const observer::window_changed& event);
  void note(const observer::event_source& source, const observer::handlers_stuck& event);
  void set_in_flight(std::size_t records, std::uint64_t bytes, double oldest);
  /// Dates; 0 for none.
  void set_call(double began);
  void set_stuck(double began);
  void set_oldest_call();

  bool has_lease_ = false;   // from lease_gained to the end of the lease or of the session
  bool has_window_ = false;  // processing reports what is in flight
  double call_began_ = 0;    // of the callback, or of the attempt in it
  double stuck_began_ = 0;   // of the oldest handler that is reported as stuck
};

}  // namespace kclxx

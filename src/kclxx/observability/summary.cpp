// SPDX-License-Identifier: Apache-2.0
#include "observability/summary.hpp"

#include <cstdio>
#include <optional>

#include "protocol/json_string.hpp"

namespace kclxx::observability {

namespace {

/// Figures that stand for an interval.
class difference {
 public:
  difference(const figures& previous, const figures& now) : previous_(previous), now_(now) {}

  [[nodiscard]] std::uint64_t counter(metric family) const {
    return now_.counter(family) - previous_.counter(family);
  }
  [[nodiscard]] double gauge(metric family) const { return now_.gauge(family); }
  /// std::nullopt when no value was entered.
  [[nodiscard]] std::optional<double> mean(metric family) const {
    const histogram_figures& now = now_.histogram(family);
    const histogram_figures& before = previous_.histogram(family);
    const std::uint64_t count = now.count() - before.count();
    if (count == 0) return std::nullopt;
    return (now.sum - before.sum) / static_cast<double>(count);
  }

 private:
  const figures& previous_;
  const figures& now_;
};

std::string fixed(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.1f", value);
  return digits;
}

std::string bytes(std::uint64_t count) {
  if (count < 1'000'000) return fixed(static_cast<double>(count) / 1e3) + " kB";
  return fixed(static_cast<double>(count) / 1e6) + " MB";
}

std::optional<std::string> cloudwatch_value(const difference& figures, metric figure,
                                            metrics_recorder::metric_type type) {
  switch (type) {
    case metrics_recorder::metric_type::counter:
      return std::to_string(figures.counter(figure));
    case metrics_recorder::metric_type::gauge:
      return to_text(figures.gauge(figure));
    case metrics_recorder::metric_type::histogram:
      break;
  }
  const auto mean = figures.mean(figure);
  return mean ? std::optional(to_text(*mean)) : std::nullopt;
}

void append_dimension(std::string& out, std::string_view name, std::string_view value) {
  out += ',';
  protocol::append_quoted(out, name);
  out += ':';
  protocol::append_quoted(out, value);
}

}  // namespace

std::string summary_line(const figures& previous, const figures& now,
                         std::chrono::steady_clock::duration time) {
  const difference change(previous, now);
  const double seconds = std::chrono::duration<double>(time).count();
  const auto counter = [&](metric figure) { return std::to_string(change.counter(figure)); };
  const std::uint64_t records = change.counter(metric::records);
  const auto mean = change.mean(metric::process_duration);
  char interval[32];
  std::snprintf(interval, sizeof interval, "%.0f", seconds);
  return "in " + std::string(interval) + " s: " + std::to_string(records) + " records (" +
         fixed(seconds > 0 ? static_cast<double>(records) / seconds : 0) + "/s), " +
         bytes(change.counter(metric::record_bytes)) + ", " + counter(metric::batches) +
         " batches" + (mean ? " of " + fixed(*mean * 1e3) + " ms" : "") + "; " +
         fixed(change.gauge(metric::behind_latest)) + " s behind; " +
         std::to_string(static_cast<std::uint64_t>(change.gauge(metric::in_flight_records))) +
         " in flight; " + counter(metric::checkpoints) + " checkpoints, " +
         counter(metric::checkpoint_errors) + " failed; " + counter(metric::retries) +
         " retries, " + counter(metric::parked_records) + " parked, " +
         counter(metric::skipped_records) + " skipped";
}

std::string cloudwatch_line(const figures& previous, const figures& now,
                            const observer::shard_names& names,
                            std::chrono::system_clock::time_point date) {
  const difference change(previous, now);
  const auto families = metrics_recorder::families();
  std::string declared;
  std::string values;
  for (std::size_t i = 0; i < families.size(); ++i) {
    const metrics_recorder::metric_family& about = families[i];
    if (about.cloudwatch_name.empty()) continue;
    const auto value = cloudwatch_value(change, static_cast<metric>(i), about.type);
    if (!value) continue;
    const std::string name(about.cloudwatch_name);
    declared += declared.empty() ? "" : ",";
    declared +=
        R"({"Name":")" + name + R"(","Unit":")" + std::string(about.cloudwatch_unit) + R"("})";
    values += ",\"" + name + "\":" + *value;
  }
  // CloudWatch accepts no empty dimension.
  std::string dimensions;
  std::string members;
  const auto dimension = [&](const char* name, const std::optional<std::string>& value) {
    if (!value || value->empty()) return;
    dimensions += std::string(dimensions.empty() ? "" : ",") + '"' + name + '"';
    append_dimension(members, name, *value);
  };
  dimension("Application", names.application_name);
  dimension("Stream", names.stream_name);
  const std::string all_shards = "[" + dimensions + "]";
  dimension("Shard", names.shard_id);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(date.time_since_epoch()).count();
  return R"({"_aws":{"Timestamp":)" + std::to_string(milliseconds) +
         R"(,"CloudWatchMetrics":[{"Namespace":"kclxx","Dimensions":[)" + all_shards + ",[" +
         dimensions + R"(]],"Metrics":[)" + declared + "]}]}" + members + values + "}";
}

}  // namespace kclxx::observability

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <ostream>
#include <sstream>
#include <string_view>
#include <utility>

#include "tool/replay/replay_result.hpp"
#include "tool/replay/report_plot.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

using replay::span;

constexpr std::string_view style = R"(
body { font: 15px/1.5 system-ui, sans-serif; color: #1f2933; background: #f5f7fa;
  margin: 0 auto; max-width: 1040px; padding: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; }
h2 { font-size: 18px; margin: 0 0 8px; overflow-wrap: anywhere; }
pre { font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere; }
section { background: #fff; border: 1px solid #e1e6ec; border-radius: 8px;
  padding: 20px; margin: 20px 0; }
svg { display: block; width: 100%; height: auto; margin: 12px 0; }
svg .title { font-size: 14px; font-weight: 600; fill: #1f2933; }
svg .label { font-size: 12px; fill: #52606d; }
svg .axis { stroke: #9aa5b1; }
svg .grid { stroke: #e8ecf1; }
svg polyline { fill: none; stroke-width: 2; stroke-linejoin: round; }
.fill-blue { fill: #2f6fde; } .stroke-blue { stroke: #2f6fde; }
.fill-green { fill: #12915a; } .stroke-green { stroke: #12915a; }
.fill-orange { fill: #d9730d; } .stroke-orange { stroke: #d9730d; }
.fill-red { fill: #c93a2e; } .stroke-red { stroke: #c93a2e; }
.fill-grey { fill: #c3cbd4; } svg .stroke-grey { stroke: #c3cbd4; stroke-width: 6; }
)";

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string duration_label(double seconds) {
  return to_text(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

plot_axis time_axis(const replay::summary& result) {
  const auto& spans = result.timeline.spans();
  return {0, std::max(seconds(spans.back().end), 1e-6), false, duration_label};
}

std::string color_of(const span& interval) {
  if (interval.action == "processRecords") return "blue";
  return interval.action == "initialize" ? "green" : "orange";
}

void print_dialogue(std::ostream& out, const replay::summary& result) {
  strip picture{
      "Dialogue: blue a batch, green initialize, orange any other action; below, "
      "checkpoints (red: failed)",
      time_axis(result),
      {},
      {}};
  for (const span& interval : result.timeline.spans()) {
    picture.bars.push_back(
        {seconds(interval.begin), seconds(interval.end), color_of(interval),
         (interval.batches > 1 ? count_label(static_cast<double>(interval.batches)) + " batches"
                               : interval.action) +
             ", " + to_text(interval.end - interval.begin)});
    if (interval.checkpoints == 0) continue;
    picture.ticks.push_back({seconds(interval.end), 0,
                             interval.failed_checkpoints > 0 ? "red" : "green",
                             std::to_string(interval.checkpoints) + " checkpoints, " +
                                 std::to_string(interval.failed_checkpoints) + " failed"});
  }
  write_strip(out, picture);
}

void print_latency(std::ostream& out, const replay::summary& result) {
  plot_series dots{"callback", "blue", plot_style::dots, {}};
  double least = 1;
  double most = 1e-6;
  for (const span& interval : result.timeline.spans()) {
    if (!interval.repeats) continue;
    const double value = std::max(seconds(interval.callback), 1e-7);
    dots.points.push_back({seconds(interval.end), value});
    least = std::min(least, value);
    most = std::max(most, value);
  }
  if (dots.points.empty()) return;
  const plot_axis y{std::pow(10, std::floor(std::log10(least))),
                    std::pow(10, std::floor(std::log10(most)) + 1), true, duration_label};
  write_plot(out, {"Batch latency: from the line's last byte to its status",
                   time_axis(result),
                   y,
                   {std::move(dots)}});
}

void print_lag(std::ostream& out, const replay::summary& result) {
  plot_series lag{"millisBehindLatest", "orange", plot_style::steps, {}};
  double most = 0.001;
  for (const span& interval : result.timeline.spans()) {
    if (!interval.behind) continue;
    lag.points.push_back({seconds(interval.end), std::max(seconds(*interval.behind), 0.0)});
    most = std::max(most, lag.points.back().y);
  }
  if (lag.points.empty()) return;
  write_plot(out, {"Lag: millisBehindLatest as it was recorded",
                   time_axis(result),
                   {0, most * 1.05, false, duration_label},
                   {std::move(lag)}});
}

void print_positions(std::ostream& out, const replay::summary& result) {
  plot_series delivered{"delivered", "grey", plot_style::steps, {{0, 0}}};
  plot_series persisted{"checkpointed", "green", plot_style::steps, {{0, 0}}};
  for (const span& interval : result.timeline.spans()) {
    delivered.points.push_back({seconds(interval.end), static_cast<double>(interval.delivered)});
    persisted.points.push_back({seconds(interval.end), static_cast<double>(interval.persisted)});
  }
  const double most = std::max(delivered.points.back().y, 1.0);
  write_plot(out, {"Position: records delivered, and up to the last checkpoint",
                   time_axis(result),
                   {0, most * 1.05, false, count_label},
                   {std::move(delivered), std::move(persisted)}});
}

void print_section(std::ostream& out, const replay::summary& result) {
  if (result.timeline.spans().empty()) return;
  out << "<section><h2>" << xml(result.shard) << "</h2>\n";
  print_dialogue(out, result);
  print_latency(out, result);
  print_lag(out, result);
  print_positions(out, result);
  out << "</section>\n";
}

}  // namespace

void print_report(std::ostream& out, const replay_result& result) {
  std::ostringstream text;
  print_text(text, result);
  out << report_beginning
      << "\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
         "<title>kclxx replay</title>\n<style>"
      << style << "</style>\n</head>\n<body>\n<h1>kclxx replay</h1>\n<pre>" << xml(text.str())
      << "</pre>\n<div>The plots run over the time of the replay, from each shard's first "
         "line.</div>\n";
  for (const replayed_shard& shard : result.shards) print_section(out, shard.summary);
  out << "</body>\n</html>\n";
}

}  // namespace kclxx::tool

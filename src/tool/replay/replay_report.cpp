// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_report.hpp"

#include <algorithm>
#include <cmath>
#include <ostream>
#include <utility>

#include "tool/replay/html_page.hpp"
#include "tool/replay/report_plot.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

namespace {

using replay::span;

constexpr std::string_view replay_style = R"(.resume { overflow-wrap: anywhere; color: #52606d; }
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

std::string cell(const std::string& text) { return "<td>" + xml(text) + "</td>"; }

std::string verdict(const replayed_shard& shard) {
  switch (status_of(shard)) {
    case exit_status::ok:
      return "ok";
    case exit_status::breach:
      return shard.summary.breaches.count() > 0 ? "breach" : "difference";
    case exit_status::child_failed:
      return "child failed";
    case exit_status::bad_transcript:
      return "bad transcript";
    case exit_status::usage:
    case exit_status::setup_failed:
      return "not played";
  }
  return "?";
}

std::string row(const std::string& name, const replay::totals& counts, const std::string& status) {
  const auto& times = counts.callbacks;
  return "<tr>" + cell(name) + cell(count_label(static_cast<double>(counts.records))) +
         cell(count_label(static_cast<double>(counts.batches))) +
         cell(to_text(times.quantile(0.5))) + cell(to_text(times.quantile(0.99))) +
         cell(to_text(times.max())) +
         cell(count_label(static_cast<double>(counts.checkpoints_asked))) +
         cell(count_label(static_cast<double>(counts.checkpoints_failed))) + "<td class=\"" +
         (status == "ok" ? "ok" : "bad") + "\">" + xml(status) + "</td></tr>\n";
}

void print_table(std::ostream& out, const replay_result& result) {
  out << "<section><div class=\"scroll\"><table>\n<tr><th>shard</th><th>records</th>"
         "<th>batches</th><th>callback p50</th><th>p99</th><th>max</th><th>checkpoints</th>"
         "<th>failed</th><th>result</th></tr>\n";
  for (const replayed_shard& shard : result.shards) {
    out << row(shard.summary.shard.empty() ? shard.file : shard.summary.shard, shard.summary.counts,
               verdict(shard));
  }
  if (result.shards.size() > 1) {
    const bool is_fine = result.status() == exit_status::ok;
    out << row("total", result.total(), is_fine ? "ok" : "see above");
  }
  out << "</table></div></section>\n";
}

plot_axis time_axis(const replay::summary& what) {
  const auto& spans = what.timeline.spans();
  return {0, std::max(seconds(spans.back().end), 1e-6), false, duration_label};
}

std::string color_of(const span& interval) {
  if (interval.action == "processRecords") return "blue";
  return interval.action == "initialize" ? "green" : "orange";
}

void print_dialogue(std::ostream& out, const replay::summary& what) {
  strip picture{
      "Dialogue: blue a batch, green initialize, orange any other action; below, "
      "checkpoints (red: failed)",
      time_axis(what),
      {},
      {}};
  for (const span& interval : what.timeline.spans()) {
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

void print_latency(std::ostream& out, const replay::summary& what) {
  plot_series dots{"callback", "blue", plot_style::dots, {}};
  double least = 1;
  double most = 1e-6;
  for (const span& interval : what.timeline.spans()) {
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
                   time_axis(what),
                   y,
                   {std::move(dots)}});
}

void print_lag(std::ostream& out, const replay::summary& what) {
  plot_series lag{"millisBehindLatest", "orange", plot_style::steps, {}};
  double most = 0.001;
  for (const span& interval : what.timeline.spans()) {
    if (!interval.behind) continue;
    lag.points.push_back({seconds(interval.end), std::max(seconds(*interval.behind), 0.0)});
    most = std::max(most, lag.points.back().y);
  }
  if (lag.points.empty()) return;
  write_plot(out, {"Lag: millisBehindLatest as it was recorded",
                   time_axis(what),
                   {0, most * 1.05, false, duration_label},
                   {std::move(lag)}});
}

void print_positions(std::ostream& out, const replay::summary& what) {
  plot_series delivered{"delivered", "grey", plot_style::steps, {{0, 0}}};
  plot_series persisted{"checkpointed", "green", plot_style::steps, {{0, 0}}};
  for (const span& interval : what.timeline.spans()) {
    delivered.points.push_back({seconds(interval.end), static_cast<double>(interval.delivered)});
    persisted.points.push_back({seconds(interval.end), static_cast<double>(interval.persisted)});
  }
  const double most = std::max(delivered.points.back().y, 1.0);
  write_plot(out, {"Position: records delivered, and up to the last checkpoint",
                   time_axis(what),
                   {0, most * 1.05, false, count_label},
                   {std::move(delivered), std::move(persisted)}});
}

void print_diagnostic(std::ostream& out, const char* kind, const replayed_shard& of,
                      const replay::diagnostic& diagnostic) {
  out << "<li><span class=\"bad\">" << kind << "</span> " << xml(of.file) << ":"
      << diagnostic.transcript_line << ": " << xml(diagnostic.what);
  if (!diagnostic.child_line.empty())
    out << "<br/><code>" << xml(diagnostic.child_line) << "</code>";
  out << "</li>\n";
}

void print_first(std::ostream& out, const char* kind, const replayed_shard& of,
                 const replay::diagnostics& all) {
  for (const auto& diagnostic : all.first()) print_diagnostic(out, kind, of, diagnostic);
  if (const auto more = all.count() - all.first().size(); more > 0) {
    out << "<li><span class=\"bad\">" << kind << "</span> and " << more << " more</li>\n";
  }
}

void print_diagnostics(std::ostream& out, const replayed_shard& of) {
  const replay::summary& what = of.summary;
  if (status_of(of) == exit_status::ok && what.notes.empty()) return;
  out << "<ul>\n";
  if (!of.setup_error.empty()) out << "<li>" << xml(of.setup_error) << "</li>\n";
  for (const std::string& note : what.notes) out << "<li>" << xml(note) << "</li>\n";
  print_first(out, "breach", of, what.breaches);
  print_first(out, "difference", of, what.differences);
  if (what.failure) print_diagnostic(out, "child failed", of, *what.failure);
  if (what.damage) print_diagnostic(out, "transcript", of, *what.damage);
  out << "</ul>\n";
}

void print_section(std::ostream& out, const replayed_shard& shard) {
  const replay::summary& what = shard.summary;
  out << "<section><h2>" << xml(what.shard.empty() ? shard.file : what.shard) << "</h2>\n";
  out << "<div class=\"resume\">" << xml(shard.file);
  if (what.resume) out << "; resumes after " << xml(to_string(*what.resume));
  out << "</div>\n";
  print_diagnostics(out, shard);
  if (!what.timeline.spans().empty()) {
    print_dialogue(out, what);
    print_latency(out, what);
    print_lag(out, what);
    print_positions(out, what);
  }
  out << "</section>\n";
}

}  // namespace

void print_report(std::ostream& out, const replay_result& result) {
  begin_page(out, "kclxx replay", replay_style);
  out << "<div>" << result.shards.size() << (result.shards.size() == 1 ? " shard, " : " shards, ")
      << to_text(result.took())
      << ". The plots run over the time of the replay, from each shard's first line.</div>\n";
  print_table(out, result);
  for (const replayed_shard& shard : result.shards) print_section(out, shard);
  end_page(out);
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_result.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <set>
#include <sstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "tool/embedded.hpp"
#include "tool/text.hpp"

namespace kclxx::replay {

using namespace tool;

totals replay_result::total() const {
  totals sum;
  for (const replayed_shard& shard : shards) sum.add(shard.summary.counts);
  return sum;
}

std::chrono::nanoseconds replay_result::took() const noexcept {
  summary whole;
  for (const replayed_shard& shard : shards) {
    const summary& summary = shard.summary;
    if (!summary.first_status) continue;
    whole.first_status =
        std::min(whole.first_status.value_or(*summary.first_status), *summary.first_status);
    whole.last_status = std::max(whole.last_status, summary.last_status);
  }
  return whole.took();
}

command_status status_of(const replayed_shard& shard) noexcept {
  if (!shard.setup_error.empty()) return command_status::setup_failed;
  if (shard.summary.damage) return command_status::bad_transcript;
  if (shard.summary.failure) return command_status::child_failed;
  const bool is_fine = shard.summary.breaches.count() == 0 &&
                       shard.summary.differences.count() == 0 &&
                       (!shard.parked || shard.parked->complete == shard.parked->records);
  return is_fine ? command_status::ok : command_status::finding;
}

bool replay_result::had_fault() const noexcept {
  return std::any_of(shards.begin(), shards.end(),
                     [](const replayed_shard& shard) { return shard.summary.had_fault; });
}

command_status replay_result::status() const noexcept {
  const bool is_fine = !effects || (effects->is_same() && effects->same_count > 0 && had_fault());
  command_status worst = is_fine ? command_status::ok : command_status::finding;
  for (const replayed_shard& shard : shards) worst = std::max(worst, status_of(shard));
  return worst;
}

namespace {

using std::chrono::nanoseconds;

std::string with_unit(double value, const char* unit) {
  std::array<char, 40> text{};
  const int precision = value < 10 ? 2 : value < 100 ? 1 : 0;
  std::snprintf(text.data(), text.size(), "%.*f %s", precision, value, unit);
  return text.data();
}

std::string bytes(double value) {
  if (value < 1e3) return std::to_string(static_cast<int>(value)) + " B";
  if (value < 1e6) return with_unit(value / 1e3, "kB");
  return value < 1e9 ? with_unit(value / 1e6, "MB") : with_unit(value / 1e9, "GB");
}

/// "12,345"
std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, 1, ',');
  return text;
}

void print_row(std::ostream& out, std::string_view name, std::string_view content) {
  out << "  " << name << std::string(14 - std::min<std::size_t>(name.size(), 13), ' ')
      << printable(content) << "\n";
}

void print_counts(std::ostream& out, const totals& counts, nanoseconds took) {
  print_row(out, "records",
            grouped(counts.records) + " in " + grouped(counts.batches) + " batches, " +
                bytes(static_cast<double>(counts.data_bytes)) + " of data in " +
                bytes(static_cast<double>(counts.line_bytes)) + " of lines");
  const double seconds = std::chrono::duration<double>(took).count();
  std::string time = to_text(took);
  if (seconds > 0) {
    time +=
        ": " + grouped(static_cast<std::uint64_t>(static_cast<double>(counts.records) / seconds)) +
        " records/s, " + bytes(static_cast<double>(counts.line_bytes) / seconds) + "/s of lines";
  }
  print_row(out, "time", time);
  if (counts.callbacks.count() > 0) {
    print_row(out, "callbacks",
              "p50 " + to_text(counts.callbacks.quantile(0.5)) + ", p99 " +
                  to_text(counts.callbacks.quantile(0.99)) + ", max " +
                  to_text(counts.callbacks.max()));
  }
  print_row(out, "checkpoints",
            grouped(counts.checkpoints_asked) + " asked, " + grouped(counts.checkpoints_answered) +
                " answered, " + grouped(counts.checkpoints_failed) + " failed");
  if (counts.successors > 0) print_row(out, "successors", grouped(counts.successors));
}

void print_diagnostic(std::ostream& out, std::string_view kind, const std::string& file,
                      const diagnostic& diagnostic) {
  print_row(out, kind,
            file + ":" + std::to_string(diagnostic.transcript_line) + ": " + diagnostic.what);
  if (!diagnostic.child_line.empty()) print_row(out, "", "child: " + diagnostic.child_line);
}

void print_diagnostics(std::ostream& out, std::string_view kind, const std::string& file,
                       const diagnostics& diagnostics) {
  for (const diagnostic& diagnostic : diagnostics.first()) {
    print_diagnostic(out, kind, file, diagnostic);
  }
  const std::uint64_t not_kept = diagnostics.count() - diagnostics.first().size();
  if (not_kept > 0) print_row(out, kind, "... and " + grouped(not_kept) + " more");
}

void print_shard(std::ostream& out, const replayed_shard& shard) {
  const summary& summary = shard.summary;
  out << (summary.shard.empty() ? "(no shard)" : printable(summary.shard)) << "  "
      << printable(shard.file) << "\n";
  if (!shard.setup_error.empty()) return print_row(out, "not played", shard.setup_error);
  if (summary.resume) {
    print_counts(out, summary.counts, summary.took());
    print_row(out, "resumes", "after " + to_string(*summary.resume));
  }
  if (shard.parked) {
    const parked_count& parked = *shard.parked;
    const bool is_double = parked.lines > parked.records;
    print_row(out, "parked",
              grouped(parked.records) + (parked.records == 1 ? " record of " : " records of ") +
                  printable(parked.shard) + ", under the name above" +
                  (is_double ? ", each once: " + grouped(parked.lines) + " lines have them" : ""));
    print_row(out, "",
              grouped(parked.complete) + " of " + grouped(parked.records) +
                  " records are complete: a checkpoint covers them. What the child "
                  "applied, it alone knows");
  }
  for (const std::string& note : summary.notes) print_row(out, "note", note);
  print_diagnostics(out, "breach", shard.file, summary.breaches);
  print_diagnostics(out, "difference", shard.file, summary.differences);
  if (summary.failure) print_diagnostic(out, "child failed", shard.file, *summary.failure);
  if (summary.damage) print_diagnostic(out, "transcript", shard.file, *summary.damage);
}

void print_lines(std::ostream& out, std::string_view kind, std::uint64_t count,
                 const std::vector<std::string>& first) {
  for (const std::string& line : first) print_row(out, kind, line);
  if (count > first.size())
    print_row(out, kind, "... and " + grouped(count - first.size()) + " more");
}

void print_effects(std::ostream& out, const effect_comparison& effects, bool had_fault) {
  out << "effects, compared with those of a run without faults\n";
  print_row(out, "lines",
            grouped(effects.same_count) + " the same, " + grouped(effects.lost_count) + " lost, " +
                grouped(effects.extra_count) + " extra");
  if (!had_fault) print_row(out, "no fault", "happened: nothing was compared");
  if (effects.same_count + effects.lost_count == 0) {
    print_row(out, "no line", "was left without faults: nothing was compared");
  }
  print_lines(out, "lost", effects.lost_count, effects.lost);
  print_lines(out, "extra", effects.extra_count, effects.extra);
  if (!effects.kept_in.empty()) print_row(out, "kept in", effects.kept_in);
}

/// What made the status command_status::finding.
std::string findings(const replay_result& result) {
  std::string text;
  const auto add = [&text](bool is_true, const char* what) {
    if (is_true) text += (text.empty() ? "" : "; ") + std::string(what);
  };
  const auto any = [&result](auto has_finding) {
    return std::any_of(result.shards.begin(), result.shards.end(), has_finding);
  };
  add(any([](const auto& shard) { return shard.summary.breaches.count() > 0; }),
      "the child broke the protocol");
  add(any([](const auto& shard) { return shard.summary.differences.count() > 0; }),
      "the child differs from the recording");
  add(any([](const auto& shard) {
        return shard.parked && shard.parked->complete < shard.parked->records;
      }),
      "parked records are left that no checkpoint covers");
  if (!result.effects) return text;
  add(!result.effects->is_same(), "the effects differ");
  add(!result.had_fault(), "no fault happened, so nothing was compared");
  add(result.effects->same_count + result.effects->lost_count == 0,
      "without faults there was no effect to compare with");
  return text;
}

std::string conclusion(const replay_result& result) {
  switch (result.status()) {
    case command_status::ok:
      return "ok";
    case command_status::finding:
      return findings(result);
    case command_status::child_failed:
      return "a child failed";
    case command_status::bad_transcript:
      return "bad transcript";
    case command_status::usage:
    case command_status::setup_failed:
      return "a shard could not be played";
  }
  return "?";
}

using nlohmann::ordered_json;

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

ordered_json object_of(const totals& counts, std::chrono::nanoseconds took) {
  return {
      {"records", counts.records},
      {"batches", counts.batches},
      {"data_bytes", counts.data_bytes},
      {"line_bytes", counts.line_bytes},
      {"seconds", std::chrono::duration<double>(took).count()},
      {"callback_microseconds",
       {{"p50", microseconds(counts.callbacks.quantile(0.5))},
        {"p99", microseconds(counts.callbacks.quantile(0.99))},
        {"max", microseconds(counts.callbacks.max())}}},
      {"checkpoints",
       {{"asked", counts.checkpoints_asked},
        {"answered", counts.checkpoints_answered},
        {"failed", counts.checkpoints_failed}}},
      {"successors", counts.successors},
  };
}

ordered_json object_of(const diagnostic& diagnostic) {
  ordered_json result{{"line", diagnostic.transcript_line}, {"what", diagnostic.what}};
  if (!diagnostic.child_line.empty()) result["child"] = diagnostic.child_line;
  return result;
}

ordered_json list_of(const diagnostics& diagnostics) {
  ordered_json first = ordered_json::array();
  for (const diagnostic& diagnostic : diagnostics.first()) first.push_back(object_of(diagnostic));
  return {{"count", diagnostics.count()}, {"first", first}};
}

ordered_json object_or_null(const std::optional<diagnostic>& diagnostic) {
  return diagnostic ? object_of(*diagnostic) : ordered_json(nullptr);
}

ordered_json object_of(const replayed_shard& shard) {
  const summary& summary = shard.summary;
  ordered_json result{{"file", shard.file}, {"status", static_cast<int>(status_of(shard))}};
  if (!shard.setup_error.empty()) {
    result["setup_error"] = shard.setup_error;
    return result;
  }
  result["shard"] = summary.shard;
  if (shard.parked) {
    result["parked"] = {{"shard", shard.parked->shard},
                        {"lines", shard.parked->lines},
                        {"records", shard.parked->records},
                        {"complete", shard.parked->complete}};
  }
  result.update(object_of(summary.counts, summary.took()));
  result["resume"] = nullptr;
  if (summary.resume) {
    result["resume"] = {{"sequenceNumber", summary.resume->sequence_number()},
                        {"subSequenceNumber", summary.resume->sub_sequence_number()}};
  }
  result["notes"] = summary.notes;
  result["breaches"] = list_of(summary.breaches);
  result["differences"] = list_of(summary.differences);
  result["child_failed"] = object_or_null(summary.failure);
  result["bad_transcript"] = object_or_null(summary.damage);
  return result;
}

ordered_json object_of(const effect_comparison& effects) {
  return {
      {"same", effects.same_count},
      {"lost", {{"count", effects.lost_count}, {"first", effects.lost}}},
      {"extra", {{"count", effects.extra_count}, {"first", effects.extra}}},
      {"kept_in", effects.kept_in.empty() ? ordered_json(nullptr) : ordered_json(effects.kept_in)}};
}

/// The rows that the page's script draws, in the order of print_report()'s columns. No text in them
/// has a character that a terminal or a browser could obey.
ordered_json rows_of(const timeline& timeline) {
  ordered_json rows = ordered_json::array();
  for (const span& interval : timeline.spans()) {
    const std::chrono::nanoseconds behind = interval.behind.value_or(std::chrono::milliseconds(0));
    rows.push_back({printable(interval.action), interval.begin.count(), interval.end.count(),
                    interval.repeats ? ordered_json(interval.callback.count()) : ordered_json(),
                    interval.behind ? ordered_json(behind.count()) : ordered_json(),
                    interval.batches, interval.delivered, interval.persisted, interval.checkpoints,
                    interval.failed_checkpoints});
  }
  return rows;
}

}  // namespace

void print_text(std::ostream& out, const replay_result& result) {
  for (const replayed_shard& shard : result.shards) print_shard(out, shard);
  if (result.shards.size() > 1) {
    // A shard may have several transcripts. A transcript whose shard is unknown counts as a shard.
    std::set<std::string_view> names;
    for (const replayed_shard& shard : result.shards) {
      names.insert(shard.summary.shard.empty() ? shard.file : shard.summary.shard);
    }
    out << "total  " << names.size() << (names.size() == 1 ? " shard\n" : " shards\n");
    print_counts(out, result.total(), result.took());
  }
  if (result.effects) print_effects(out, *result.effects, result.had_fault());
  out << conclusion(result) << "\n";
}

void print_json(std::ostream& out, const replay_result& result) {
  ordered_json shards = ordered_json::array();
  for (const replayed_shard& shard : result.shards) shards.push_back(object_of(shard));
  ordered_json report{{"status", static_cast<int>(result.status())},
                      {"total", object_of(result.total(), result.took())},
                      {"shards", shards}};
  if (result.effects) {
    report["effects"] = object_of(*result.effects);
    report["effects"]["had_fault"] = result.had_fault();
  }
  // The report quotes the child, which need not write UTF-8.
  out << report.dump(2, ' ', true, ordered_json::error_handler_t::replace) << "\n";
}

void print_report(std::ostream& out, const replay_result& result) {
  std::ostringstream text;
  print_text(text, result);
  ordered_json shards = ordered_json::array();
  for (const replayed_shard& shard : result.shards) {
    const ordered_json rows = rows_of(shard.summary.timeline);
    if (rows.empty()) continue;
    shards.push_back({{"shard", printable(shard.summary.shard)}, {"rows", rows}});
  }
  const ordered_json data{{"summary", text.str()},
                          {"columns",
                           {"action", "begin", "end", "callback", "behind", "batches", "delivered",
                            "persisted", "checkpoints", "failed"}},
                          {"shards", shards}};
  const std::string_view page = embedded::report_page;
  const std::string_view placeholder = "{{data}}";
  const std::size_t begin = page.find(placeholder);
  out << page.substr(0, begin);
  // A '<' could end the script's element. JSON has this character in texts alone.
  for (const char character : data.dump(-1, ' ', true, ordered_json::error_handler_t::replace)) {
    character == '<' ? out << "\\u003c" : out << character;
  }
  out << page.substr(begin + placeholder.size());
}

}  // namespace kclxx::replay

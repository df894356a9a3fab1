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
  totals all;
  for (const replayed_shard& shard : shards) all.add(shard.summary.counts);
  return all;
}

std::chrono::nanoseconds replay_result::took() const noexcept {
  summary all;
  for (const replayed_shard& shard : shards) {
    const summary& summary = shard.summary;
    if (!summary.first_status) continue;
    all.first_status =
        std::min(all.first_status.value_or(*summary.first_status), *summary.first_status);
    all.last_status = std::max(all.last_status, summary.last_status);
  }
  return all.took();
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
  const bool is_fine = !effects || (effects->is_same() && effects->same > 0 && had_fault());
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
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
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
                       const diagnostics& all) {
  for (const diagnostic& diagnostic : all.first()) print_diagnostic(out, kind, file, diagnostic);
  const std::uint64_t more = all.count() - all.first().size();
  if (more > 0) print_row(out, kind, "... and " + grouped(more) + " more");
}

void print_shard(std::ostream& out, const replayed_shard& shard) {
  const summary& what = shard.summary;
  out << (what.shard.empty() ? "(no shard)" : printable(what.shard)) << "  "
      << printable(shard.file) << "\n";
  if (!shard.setup_error.empty()) return print_row(out, "not played", shard.setup_error);
  if (what.resume) {
    print_counts(out, what.counts, what.took());
    print_row(out, "resumes", "after " + to_string(*what.resume));
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
  for (const std::string& note : what.notes) print_row(out, "note", note);
  print_diagnostics(out, "breach", shard.file, what.breaches);
  print_diagnostics(out, "difference", shard.file, what.differences);
  if (what.failure) print_diagnostic(out, "child failed", shard.file, *what.failure);
  if (what.damage) print_diagnostic(out, "transcript", shard.file, *what.damage);
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
            grouped(effects.same) + " the same, " + grouped(effects.lost_count) + " lost, " +
                grouped(effects.extra_count) + " extra");
  if (!had_fault) print_row(out, "no fault", "happened: nothing was compared");
  if (effects.same + effects.lost_count == 0) {
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
  const auto any = [&result](auto is_true) {
    return std::any_of(result.shards.begin(), result.shards.end(), is_true);
  };
  add(any([](const auto& one) { return one.summary.breaches.count() > 0; }),
      "the child broke the protocol");
  add(any([](const auto& one) { return one.summary.differences.count() > 0; }),
      "the child differs from the recording");
  add(any([](const auto& one) { return one.parked && one.parked->complete < one.parked->records; }),
      "parked records are left that no checkpoint covers");
  if (!result.effects) return text;
  add(!result.effects->is_same(), "the effects differ");
  add(!result.had_fault(), "no fault happened, so nothing was compared");
  add(result.effects->same + result.effects->lost_count == 0,
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

ordered_json list_of(const diagnostics& all) {
  ordered_json first = ordered_json::array();
  for (const diagnostic& diagnostic : all.first()) first.push_back(object_of(diagnostic));
  return {{"count", all.count()}, {"first", first}};
}

ordered_json object_or_null(const std::optional<diagnostic>& diagnostic) {
  return diagnostic ? object_of(*diagnostic) : ordered_json(nullptr);
}

ordered_json object_of(const replayed_shard& shard) {
  const summary& what = shard.summary;
  ordered_json result{{"file", shard.file}, {"status", static_cast<int>(status_of(shard))}};
  if (!shard.setup_error.empty()) {
    result["setup_error"] = shard.setup_error;
    return result;
  }
  result["shard"] = what.shard;
  if (shard.parked) {
    result["parked"] = {{"shard", shard.parked->shard},
                        {"lines", shard.parked->lines},
                        {"records", shard.parked->records},
                        {"complete", shard.parked->complete}};
  }
  result.update(object_of(what.counts, what.took()));
  result["resume"] = nullptr;
  if (what.resume) {
    result["resume"] = {{"sequenceNumber", what.resume->sequence_number()},
                        {"subSequenceNumber", what.resume->sub_sequence_number()}};
  }
  result["notes"] = what.notes;
  result["breaches"] = list_of(what.breaches);
  result["differences"] = list_of(what.differences);
  result["child_failed"] = object_or_null(what.failure);
  result["bad_transcript"] = object_or_null(what.damage);
  return result;
}

ordered_json object_of(const effect_comparison& effects) {
  return {
      {"same", effects.same},
      {"lost", {{"count", effects.lost_count}, {"first", effects.lost}}},
      {"extra", {{"count", effects.extra_count}, {"first", effects.extra}}},
      {"kept_in", effects.kept_in.empty() ? ordered_json(nullptr) : ordered_json(effects.kept_in)}};
}

// A script draws the page. What it shows is text, and the text has no character that a reader could
// obey.
ordered_json rows_of(const timeline& timeline) {
  ordered_json rows = ordered_json::array();
  for (const span& one : timeline.spans()) {
    const std::chrono::nanoseconds behind = one.behind.value_or(std::chrono::milliseconds(0));
    rows.push_back({printable(one.action), one.begin.count(), one.end.count(),
                    one.repeats ? ordered_json(one.callback.count()) : ordered_json(),
                    one.behind ? ordered_json(behind.count()) : ordered_json(), one.batches,
                    one.delivered, one.persisted, one.checkpoints, one.failed_checkpoints});
  }
  return rows;
}

}  // namespace

void print_text(std::ostream& out, const replay_result& result) {
  for (const replayed_shard& shard : result.shards) print_shard(out, shard);
  if (result.shards.size() > 1) {
    // A shard may have several transcripts; one whose shard is unknown counts, too.
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
  ordered_json all{{"status", static_cast<int>(result.status())},
                   {"total", object_of(result.total(), result.took())},
                   {"shards", shards}};
  if (result.effects) {
    all["effects"] = object_of(*result.effects);
    all["effects"]["had_fault"] = result.had_fault();
  }
  // What a child wrote need not be UTF-8.
  out << all.dump(2, ' ', true, ordered_json::error_handler_t::replace) << "\n";
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
  std::string_view page = embedded::report_page;
  const std::string_view place = "{{data}}";
  const std::size_t at = page.find(place);
  out << page.substr(0, at);
  // In a script's element a '<' could end it; JSON has it in texts only.
  for (const char one : data.dump(-1, ' ', true, ordered_json::error_handler_t::replace)) {
    one == '<' ? out << "\\u003c" : out << one;
  }
  out << page.substr(at + place.size());
}

}  // namespace kclxx::replay

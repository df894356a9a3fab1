// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ostream>
#include <string_view>

#include "tool/replay/replay_result.hpp"
#include "tool/text.hpp"

namespace kclxx::tool {

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

void print_counts(std::ostream& out, const replay::totals& counts, nanoseconds took) {
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
                      const replay::diagnostic& diagnostic) {
  print_row(out, kind,
            file + ":" + std::to_string(diagnostic.transcript_line) + ": " + diagnostic.what);
  if (!diagnostic.child_line.empty()) print_row(out, "", "child: " + diagnostic.child_line);
}

void print_diagnostics(std::ostream& out, std::string_view kind, const std::string& file,
                       const replay::diagnostics& all) {
  for (const replay::diagnostic& diagnostic : all.first())
    print_diagnostic(out, kind, file, diagnostic);
  const std::uint64_t more = all.count() - all.first().size();
  if (more > 0) print_row(out, kind, "... and " + grouped(more) + " more");
}

void print_shard(std::ostream& out, const replayed_shard& shard) {
  const replay::summary& what = shard.summary;
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

/// What made the status exit_status::finding.
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

std::string verdict(const replay_result& result) {
  switch (result.status()) {
    case exit_status::ok:
      return "ok";
    case exit_status::finding:
      return findings(result);
    case exit_status::child_failed:
      return "a child failed";
    case exit_status::bad_transcript:
      return "bad transcript";
    case exit_status::usage:
    case exit_status::setup_failed:
      return "a shard could not be played";
  }
  return "?";
}

}  // namespace

void print_text(std::ostream& out, const replay_result& result) {
  for (const replayed_shard& shard : result.shards) print_shard(out, shard);
  if (result.shards.size() > 1) {
    out << "total  " << result.shards.size() << " shards\n";
    print_counts(out, result.total(), result.took());
  }
  if (result.effects) print_effects(out, *result.effects, result.had_fault());
  out << verdict(result) << "\n";
}

}  // namespace kclxx::tool

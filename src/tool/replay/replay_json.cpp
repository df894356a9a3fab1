// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include <nlohmann/json.hpp>

#include "tool/replay/replay_result.hpp"

namespace kclxx::tool {

namespace {

using json = nlohmann::ordered_json;

double microseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

json object_of(const replay::totals& counts, std::chrono::nanoseconds took) {
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

json object_of(const replay::diagnostic& diagnostic) {
  json result{{"line", diagnostic.transcript_line}, {"what", diagnostic.what}};
  if (!diagnostic.child_line.empty()) result["child"] = diagnostic.child_line;
  return result;
}

json list_of(const replay::diagnostics& all) {
  json first = json::array();
  for (const replay::diagnostic& diagnostic : all.first()) first.push_back(object_of(diagnostic));
  return {{"count", all.count()}, {"first", first}};
}

json object_or_null(const std::optional<replay::diagnostic>& diagnostic) {
  return diagnostic ? object_of(*diagnostic) : json(nullptr);
}

json object_of(const replayed_shard& shard) {
  const replay::summary& what = shard.summary;
  json result{{"file", shard.file}, {"status", static_cast<int>(status_of(shard))}};
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

json object_of(const effect_comparison& effects) {
  return {{"same", effects.same},
          {"lost", {{"count", effects.lost_count}, {"first", effects.lost}}},
          {"extra", {{"count", effects.extra_count}, {"first", effects.extra}}},
          {"kept_in", effects.kept_in.empty() ? json(nullptr) : json(effects.kept_in)}};
}

}  // namespace

void print_json(std::ostream& out, const replay_result& result) {
  json shards = json::array();
  for (const replayed_shard& shard : result.shards) shards.push_back(object_of(shard));
  json all{{"status", static_cast<int>(result.status())},
           {"total", object_of(result.total(), result.took())},
           {"shards", shards}};
  if (result.effects) {
    all["effects"] = object_of(*result.effects);
    all["effects"]["had_fault"] = result.had_fault();
  }
  // What a child wrote need not be UTF-8.
  out << all.dump(2, ' ', true, json::error_handler_t::replace) << "\n";
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
// parallel() with a handler that waits 1 ms, as one that stores a record elsewhere does: how the
// rate grows with the lanes. On threads, without a daemon.
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <kclxx/checkpointer.hpp>
#include <kclxx/processing/parallel.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::bench {

namespace {

/// A batch with a key for each record.
record_batch make_batch(std::size_t records) {
  struct memory {
    std::vector<std::string> numbers;
    std::vector<record> records;
  };
  const auto owner = std::make_shared<memory>();
  owner->numbers.reserve(records);
  for (std::size_t i = 0; i < records; ++i) {
    record::fields fields;
    fields.sequence_number =
        fields.partition_key.emplace(owner->numbers.emplace_back(std::to_string(i + 1)));
    owner->records.emplace_back(fields);
  }
  return {owner->records, owner};
}

void lanes_with_1_ms_handlers(benchmark::State& state) {
  const auto lanes = static_cast<std::size_t>(state.range(0));
  const record_batch batch = make_batch(lanes * 100);
  shard_context::fields fields;
  fields.shard_id = "shardId-000000000000";
  for (auto _ : state) {
    const shard_context shard(fields);
    const checkpointer with(shard.service());
    const auto processor = parallel(
        [](const record&) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, {},
        {.lanes = lanes,
         .window_records = batch.size(),
         .stuck_after = std::chrono::milliseconds(0)})(shard);  // there are no timers
    processor->process_records(batch, with);
    processor->shard_ended(with);  // waits for all
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(batch.size()));
}

BENCHMARK(lanes_with_1_ms_handlers)
    ->Arg(1)
    ->Arg(8)
    ->Arg(64)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace

}  // namespace kclxx::bench

// SPDX-License-Identifier: Apache-2.0
// What parallel() does to know which records are ready and complete: 10^6 records in batches of
// 500, completed in random order within a full window of 10,000.
#include "processing/record_queue.hpp"

#include <benchmark/benchmark.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace kclxx::bench {

namespace {

constexpr std::size_t batch_size = 500;
constexpr std::size_t window_records = 10'000;
constexpr std::uint64_t all_records = 1'000'000;

/// A batch of 100-byte records over so many partition keys.
record_batch make_batch(std::size_t keys, std::uint32_t seed) {
  struct memory {
    std::vector<std::string> texts;
    std::vector<record> records;
  };
  const auto owner = std::make_shared<memory>();
  std::mt19937 random(seed);
  owner->texts.reserve(2 * batch_size);
  for (std::size_t i = 0; i < batch_size; ++i) {
    record::fields fields;
    fields.sequence_number =
        owner->texts.emplace_back("49590338271490256608559692538361571095921575989136588898");
    fields.partition_key = owner->texts.emplace_back("customer-" + std::to_string(random() % keys));
    static const std::string data(100, 'x');
    fields.data = data;
    owner->records.emplace_back(fields);
  }
  return {owner->records, owner};
}

void record_queue_in_random_order(benchmark::State& state, order in) {
  std::vector<record_batch> batches;
  for (std::uint32_t i = 0; i < 100; ++i) batches.push_back(make_batch(5'000, i));
  const processing::record_queue::time_point now{};
  for (auto _ : state) {
    processing::record_queue queue(in, window_records, std::uint64_t{64} << 20);
    std::minstd_rand random(1);
    std::vector<processing::arrival> taken;
    std::uint64_t complete = 0;
    std::size_t batch = 0;
    std::size_t offset = 0;
    while (complete < all_records) {
      while (queue.wants_more(batches[batch % batches.size()][offset].data().size())) {
        offset += queue.admit(batches[batch % batches.size()], offset, now);
        if (offset < batch_size) break;
        offset = 0;
        ++batch;
      }
      while (const auto one = queue.take()) taken.push_back(*one);
      // All that is ready is taken, and one of it is complete.
      const std::size_t at = random() % taken.size();
      queue.complete(taken[at]);
      taken[at] = taken.back();
      taken.pop_back();
      ++complete;
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(all_records));
}

BENCHMARK_CAPTURE(record_queue_in_random_order, key, order::key)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(record_queue_in_random_order, none, order::none)->Unit(benchmark::kMillisecond);

}  // namespace

}  // namespace kclxx::bench

// SPDX-License-Identifier: Apache-2.0
// The lines that the child writes, and the positions in them.
#include <cstring>
#include <string>

#include <kclxx/sequence_position.hpp>

#include "floor.hpp"
#include "protocol/encoder.hpp"

namespace kclxx::bench {

namespace {

constexpr std::string_view lower = "49590338271490256608559692538361571095921575989136588898";
constexpr std::string_view higher = "49590338271490256608559692538361571095921575989136588899";

std::string answer_of_a_batch() {
  std::string lines;
  protocol::append_checkpoint(lines, sequence_position(lower));
  protocol::append_status(lines, "processRecords");
  return lines;
}

void encode(benchmark::State& state) {
  const sequence_position position(lower);
  std::string lines;
  for (auto _ : state) {
    lines.clear();
    protocol::append_checkpoint(lines, position);
    protocol::append_status(lines, "processRecords");
    benchmark::DoNotOptimize(lines.data());
    benchmark::ClobberMemory();
  }
  count_bytes(state, lines.size());
}
void floor_of_encode(benchmark::State& state) { copy_and_search(state, answer_of_a_batch()); }

void position_compare(benchmark::State& state) {
  sequence_position a(lower);
  sequence_position b(higher);
  for (auto _ : state) {
    benchmark::DoNotOptimize(a);
    benchmark::DoNotOptimize(b);
    benchmark::DoNotOptimize(a < b);
  }
  count_bytes(state, lower.size() + higher.size());
}
void position_parse(benchmark::State& state) {
  std::string_view text = lower;
  for (auto _ : state) {
    benchmark::DoNotOptimize(text);
    benchmark::DoNotOptimize(sequence_position::parse(text));
  }
  count_bytes(state, lower.size());
}
void floor_of_position(benchmark::State& state) { copy_and_search(state, lower); }

BENCHMARK(encode);
BENCHMARK(floor_of_encode);
BENCHMARK(position_compare);
BENCHMARK(floor_of_position)->Name("floor_of_position_compare");
BENCHMARK(position_parse);
BENCHMARK(floor_of_position)->Name("floor_of_position_parse");

}  // namespace

}  // namespace kclxx::bench

// SPDX-License-Identifier: Apache-2.0
// A line into records. Decoding rewrites the line, so each round begins with a copy of it, as the
// floor does.
#include <cstring>
#include <deque>
#include <string>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>

#include "driver/batch_line.hpp"
#include "floor.hpp"
#include "protocol/base64.hpp"
#include "protocol/decoder.hpp"

namespace kclxx::bench {

namespace {

std::size_t records_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(1));
}
std::size_t bytes_of(const benchmark::State& state) {
  return static_cast<std::size_t>(state.range(0));
}

std::string batch_line(const benchmark::State& state) {
  std::string line(::bench::batch_line(records_of(state), bytes_of(state)).text());
  line.pop_back();  // the newline
  return line;
}

void decode(benchmark::State& state) {
  const std::string line = batch_line(state);
  const pages from = make_pages(line.size());
  line.copy(from.get(), line.size());
  const pages memory = make_pages(line.size() + protocol::decoder::padding);
  protocol::decoder decoder;
  std::vector<record> records;
  std::deque<std::string> arena;
  bool replaced = false;
  for (auto _ : state) {
    std::memcpy(memory.get(), from.get(), line.size());
    const auto decoded = decoder.decode(memory.get(), line.size(), records, arena, replaced);
    if (std::holds_alternative<protocol::decode_error>(decoded) ||
        records.size() != records_of(state)) {
      state.SkipWithError("the line was not decoded");
      break;
    }
  }
  count_bytes(state, line.size());
}

void floor_of_decode(benchmark::State& state) { copy_and_search(state, batch_line(state)); }

void base64(benchmark::State& state) {
  const std::string text(bytes_of(state), 'k');
  std::string memory(text.size(), '\0');
  for (auto _ : state) {
    std::memcpy(memory.data(), text.data(), text.size());
    benchmark::DoNotOptimize(protocol::decode_base64(memory.data(), memory.size()).size);
    benchmark::ClobberMemory();
  }
  count_bytes(state, text.size());
}
void floor_of_base64(benchmark::State& state) {
  copy_and_search(state, std::string(bytes_of(state), 'k'));
}

// Bytes a record, records a batch: lines of at most 4 MB. A longer one is read from memory that the
// whole host shares, and its ratio to the floor differs from run to run by a half.
void sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"bytes", "records"});
  for (const std::int64_t bytes : {100, 1024, 20480, 1000000}) {
    for (std::int64_t records = 1; records <= 10000; records *= 10) {
      if (bytes * records <= 3'000'000) benchmark->Args({bytes, records});
    }
  }
}

void texts(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("characters")->Arg(136)->Arg(1368)->Arg(27308);
}

BENCHMARK(decode)->Apply(sizes);
BENCHMARK(floor_of_decode)->Apply(sizes);
BENCHMARK(base64)->Apply(texts);
BENCHMARK(floor_of_base64)->Apply(texts);

}  // namespace

}  // namespace kclxx::bench

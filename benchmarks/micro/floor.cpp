// SPDX-License-Identifier: Apache-2.0
#include "floor.hpp"

#include <cstdint>
#include <cstring>
#include <memory>

namespace kclxx::bench {

void copy_and_search(benchmark::State& state, std::string_view text) {
  const auto memory = std::make_unique<char[]>(text.size() + 1);
  memory[text.size()] = '\n';
  for (auto _ : state) {
    std::memcpy(memory.get(), text.data(), text.size());
    benchmark::DoNotOptimize(memory.get());
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(std::memchr(memory.get(), '\n', text.size() + 1));
  }
  count_bytes(state, text.size());
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(bytes));
}

}  // namespace kclxx::bench

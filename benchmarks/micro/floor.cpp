// SPDX-License-Identifier: Apache-2.0
#include "floor.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace kclxx::bench {

namespace {

// A copy of less is over in a few nanoseconds, and then chance decides.
constexpr std::size_t least = 4096;
constexpr std::align_val_t page{4096};

}  // namespace

void page_deleter::operator()(char* memory) const { ::operator delete(memory, page); }
pages make_pages(std::size_t size) { return pages(static_cast<char*>(::operator new(size, page))); }

void copy_and_search(benchmark::State& state, std::string_view text) {
  const std::size_t size = std::max(text.size(), least);
  const pages from = make_pages(size);
  const pages to = make_pages(size + 1);
  for (std::size_t i = 0; i < size; ++i) from[i] = text[i % text.size()];
  std::memset(to.get(), 0, size);  // the kernel's part is not measured
  to[size] = '\n';
  for (auto _ : state) {
    std::memcpy(to.get(), from.get(), size);
    benchmark::DoNotOptimize(to.get());
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(std::memchr(to.get(), '\n', size + 1));
  }
  count_bytes(state, size);
}

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) *
                          static_cast<std::int64_t>(bytes));
}

}  // namespace kclxx::bench

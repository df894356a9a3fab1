// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>
#include <cstddef>
#include <memory>
#include <new>
#include <string_view>

namespace kclxx::bench {

/// What no reader of lines is below: the bytes are copied once, as read(2) does, and searched for
/// their newline; 4 KiB at least, with the text over and over. A benchmark `x/1/2` is compared with
/// `floor_of_x/1/2` of the same run.
void copy_and_search(benchmark::State& state, std::string_view text);

/// Memory that begins on a page. Where malloc's begins differs in each run, and a copy of many
/// bytes shows it.
struct page_deleter {
  void operator()(char* memory) const;
};
using pages = std::unique_ptr<char[], page_deleter>;
pages make_pages(std::size_t size);

/// Bytes per second, for both alike.
void count_bytes(benchmark::State& state, std::size_t bytes);

}  // namespace kclxx::bench

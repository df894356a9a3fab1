// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <benchmark/benchmark.h>
#include <cstddef>
#include <string_view>

namespace kclxx::bench {

/// What no reader of lines is below: the bytes are copied once, as read(2) does, and searched for
/// their newline; 4 KiB at least, with the text over and over. A benchmark `x/1/2` is compared with
/// `floor_of_x/1/2` of the same run.
void copy_and_search(benchmark::State& state, std::string_view text);

/// Bytes per second, for both alike.
void count_bytes(benchmark::State& state, std::size_t bytes);

}  // namespace kclxx::bench

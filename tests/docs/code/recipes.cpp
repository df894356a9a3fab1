// SPDX-License-Identifier: Apache-2.0
// The recipes of docs/processing.md.
#include "recipes.hpp"

#include <chrono>
#include <stdexcept>

namespace recipes {

// clang-format off
kclxx::processor_factory recent_records(function show) {
  return kclxx::each([show](const kclxx::record& event, const kclxx::shard_context& shard) {
    const auto arrival = event.approximate_arrival_timestamp();
    const bool is_too_old = arrival && *arrival < shard.date() - std::chrono::hours(1);
    if (!is_too_old) show(event.data());
  });
}

kclxx::processor_factory at_most_100_a_second(function send) {
  return kclxx::each([send](const kclxx::shard_context& shard) {
    return [send, &shard, next = shard.now()](const kclxx::record& event) mutable {
      if (!shard.sleep_until(next)) throw std::runtime_error("the shard is given up");
      next = shard.now() + std::chrono::milliseconds(10);
      send(event.data());
    };
  });
}
// clang-format on

}  // namespace recipes

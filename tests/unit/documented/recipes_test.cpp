// SPDX-License-Identifier: Apache-2.0
// What the recipes of the documents do.
#include "../../docs/code/recipes.hpp"

#include <chrono>
#include <string>
#include <vector>

#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using texts = std::vector<std::string>;

TEST_CASE("records of the last hour are shown, and older ones are complete without it",
          "[documented]") {
  const std::chrono::milliseconds now{1'600'000'000'000};  // of the kit's clock
  texts shown;
  kclxx::testing::worker worker(
      recipes::recent_records([&](std::string_view text) { shown.emplace_back(text); }));
  worker.initialize().deliver_records(
      {{.data = "old", .approximate_arrival_timestamp = now - 61min},
       {.data = "new", .approximate_arrival_timestamp = now - 59min},
       {.data = "undated"}});
  CHECK(shown == texts{"new", "undated"});
  CHECK(worker.persisted() == kclxx::sequence_position("3"));
}

TEST_CASE("a limited handler is called 100 times a second, over all batches", "[documented]") {
  int sent = 0;
  kclxx::testing::worker worker(recipes::at_most_100_a_second([&](std::string_view) { ++sent; }));
  worker.initialize();
  const auto began = worker.now();
  for (int i = 0; i < 3; ++i) worker.deliver(texts(100, "x"));
  CHECK(sent == 300);
  CHECK(worker.now() - began == 2990ms);
}

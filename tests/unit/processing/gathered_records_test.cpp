// SPDX-License-Identifier: Apache-2.0
#include "processing/gathered_records.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/allocations.hpp"
#include "support/catch.hpp"

using namespace kclxx;
using processing::gathered_records;
using namespace std::chrono_literals;

TEST_CASE("a gathered record has all that the delivered one had", "[processing]") {
  const std::string large(1'000'000, 'x');
  const std::vector<record::fields> fields{{large, "k", "1", 0, 5ms},
                                           {"", "", "2", 7, {}},
                                           {std::nullopt, {}, "2", 8, 1000ms},
                                           {large, "a key", "3", 0, {}}};
  std::vector<record> records;
  for (const auto& values : fields) records.emplace_back(values);
  gathered_records gathered;
  gathered.add(record_batch(std::span(records).first(2), nullptr));
  gathered.add(record_batch(std::span(records).subspan(2), nullptr, 12ms));
  CHECK(gathered.records() == 4);
  CHECK(gathered.data_bytes() == 2'000'000);
  const record_batch batch = gathered.take();
  CHECK(gathered.empty());
  CHECK(gathered.data_bytes() == 0);
  CHECK(gathered.bytes() == 0);
  CHECK(batch.millis_behind_latest() == 12ms);
  gathered.add(record_batch(std::span(records).first(1), nullptr));  // in memory of its own
  REQUIRE(batch.size() == records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    CAPTURE(i);
    CHECK(batch[i].data() == records[i].data());
    CHECK(batch[i].has_data() == records[i].has_data());
    CHECK(batch[i].partition_key() == records[i].partition_key());
    CHECK(batch[i].position() == records[i].position());
    CHECK(batch[i].approximate_arrival_timestamp() == records[i].approximate_arrival_timestamp());
    if (records[i].has_data()) CHECK(batch[i].data().data() != records[i].data().data());
  }
}

TEST_CASE("gathered records use little more memory than their texts, and keep a part of it",
          "[processing]") {
  constexpr std::size_t most_kept = 2 * gathered_records::spare_size;
  const std::string text(1'000'000, 'x');
  const auto memory = [before = test::bytes_in_use.load()] { return test::bytes_in_use - before; };
  gathered_records gathered;
  for (std::size_t round = 0; round < 40; ++round) {
    CAPTURE(round);
    // Some rounds have many small records, others have sizes in a changing order.
    const bool is_small = round % 10 == 0;
    for (std::size_t i = 0; gathered.bytes() < 40'000'000; ++i) {
      const std::size_t size =
          is_small || i % 10 != round % 10 ? 1'000 : 60'000 + i * 7'919 % 900'000;
      const record one(record::fields{std::string_view(text).substr(0, size), "k", "1", 0, {}});
      gathered.add(record_batch(std::span(&one, 1), nullptr));
    }
    CHECK(memory() < 40'000'000 * 3 / 2 + most_kept);
    static_cast<void>(gathered.take());
    CHECK(memory() <= most_kept);
  }
  CHECK(memory() > gathered_records::spare_size / 2);
  gathered.release_memory();
  CHECK(memory() < 100'000);
}

TEST_CASE("gathered records take no more memory than they count", "[processing]") {
  const std::string number(56, '4');
  const std::size_t size =
      GENERATE(as<std::size_t>(), 0, 1, 100, 1'000, 8'100, 8'200, 30'000, 52'400, 140'000);
  const std::string text(size, 'x');
  const std::vector<record> call(size < 2'000 ? 1'000 : 7,
                                 record(record::fields{text, "a key", number, 0, {}}));
  const auto memory = [before = test::bytes_in_use.load()] { return test::bytes_in_use - before; };
  gathered_records gathered;
  for (int i = 0; i < 100; ++i) {
    gathered.add(record_batch(call, nullptr));
    CHECK(memory() <= gathered.bytes());
  }
}

TEST_CASE("gathered records keep no call alive, and their memory is used again", "[processing]") {
  gathered_records gathered;
  const char* first = nullptr;
  for (int round = 0; round < 3; ++round) {
    auto call =
        std::make_shared<std::vector<std::string>>(std::vector<std::string>{"data", "more"});
    const std::weak_ptr<const void> alive = call;
    std::vector<record> records;
    for (const std::string& text : *call)
      records.emplace_back(record::fields{text, "k", "1", 0, {}});
    gathered.add(record_batch(records, std::exchange(call, nullptr)));
    CHECK(alive.expired());
    const record_batch taken = gathered.take();
    if (round == 0) first = taken[0].data().data();
    CHECK(taken[0].data().data() == first);
    CHECK(taken[0].data() == "data");
    CHECK(taken[1].data() == "more");
  }
}

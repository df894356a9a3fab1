// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <vector>

#include <kclxx/record_batch.hpp>

#include "support/catch.hpp"

using namespace kclxx;

namespace {

record_batch batch_of(std::size_t count) {
  auto records = std::make_shared<std::vector<record>>();
  static const char* const numbers[] = {"1", "2", "3", "4", "5"};
  for (std::size_t i = 0; i < count; ++i) {
    records->emplace_back(
        record::fields{.data = "d", .partition_key = "k", .sequence_number = numbers[i]});
  }
  const std::span<const record> views(*records);
  return {views, std::move(records), std::chrono::milliseconds(9)};
}

}  // namespace

TEST_CASE("a record distinguishes null from empty", "[record][P19]") {
  const record nothing(record::fields{.sequence_number = "7"});
  CHECK_FALSE(nothing.has_data());
  CHECK(nothing.data().empty());
  CHECK_FALSE(nothing.partition_key());
  CHECK_FALSE(nothing.approximate_arrival_timestamp());
  CHECK_FALSE(nothing.as_fields().data);
  CHECK_FALSE(nothing.as_fields().partition_key);
  CHECK_FALSE(nothing.as_fields().approximate_arrival_timestamp);
  const record empty(
      record::fields{.data = std::string_view(), .partition_key = "", .sequence_number = "7"});
  CHECK(empty.has_data());
  CHECK(empty.partition_key() == "");
}

TEST_CASE("a record keeps each of the fields that it is made from", "[record]") {
  const record made(record::fields{"data", "key", "7", 3, std::chrono::milliseconds(5)});
  const auto [data, partition_key, sequence_number, sub_sequence_number, arrival] =
      made.as_fields();
  CHECK(data == "data");
  CHECK(partition_key == "key");
  CHECK(sequence_number == "7");
  CHECK(sub_sequence_number == 3);
  CHECK(arrival == std::chrono::milliseconds(5));
}

TEST_CASE("a record has a position, the pair", "[record][P17]") {
  const record third(record::fields{.sequence_number = "7", .sub_sequence_number = 3});
  CHECK(third.position() == sequence_position("7", 3));
  CHECK_THROWS_AS(record(record::fields{}).position(), std::invalid_argument);
}

TEST_CASE("a record's data can be read as bytes", "[record]") {
  const record binary(record::fields{.data = "\xff\x01", .sequence_number = "7"});
  REQUIRE(binary.bytes().size() == 2);
  CHECK(binary.bytes()[0] == std::byte{0xff});
  CHECK(static_cast<const void*>(binary.bytes().data()) == binary.data().data());
  CHECK(record(record::fields{.sequence_number = "7"}).bytes().empty());
}

TEST_CASE("the records after a position are what is left to do", "[record_batch]") {
  const record_batch batch = batch_of(5);
  CHECK(batch.after(sequence_position("2")).front().sequence_number() == "3");
  CHECK(batch.after(sequence_position("2")).size() == 3);
  CHECK(batch.after(sequence_position("5")).empty());
  CHECK(batch.after(sequence_position("0")).size() == 5);
  CHECK(batch.after(sequence_position("TRIM_HORIZON")).size() == 5);
  CHECK(batch.after(sequence_position("LATEST")).size() == 5);
  CHECK(batch.after(sequence_position("AT_TIMESTAMP")).size() == 5);
  CHECK(batch.after(sequence_position("SHARD_END")).empty());
  CHECK(record_batch().after(sequence_position("2")).empty());
  const record_batch rest = batch.after(sequence_position("2"));
  CHECK(rest.begin() == batch.begin() + 2);
  CHECK(rest.owner() == batch.owner());
  CHECK(rest.millis_behind_latest() == batch.millis_behind_latest());
}

TEST_CASE("a slice shares the batch's memory and keeps it alive", "[record_batch]") {
  record_batch slice;
  {
    const record_batch batch = batch_of(5);
    slice = batch.slice(1, 3);
    CHECK(&slice[0] == &batch[1]);
  }
  REQUIRE(slice.size() == 3);
  CHECK(slice.front().sequence_number() == "2");
  CHECK(slice.back().sequence_number() == "4");
  CHECK(slice.millis_behind_latest() == std::chrono::milliseconds(9));
}

TEST_CASE("what lies beyond the end is left out of a slice", "[record_batch]") {
  const record_batch batch = batch_of(3);
  CHECK(batch.slice(2, 5).size() == 1);
  CHECK(batch.slice(3, 1).empty());
  CHECK(batch.slice(9, 9).empty());
  CHECK(batch.slice(0, static_cast<std::size_t>(-1)).size() == 3);
  CHECK(record_batch().slice(0, 1).empty());
}

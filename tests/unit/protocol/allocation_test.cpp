// SPDX-License-Identifier: Apache-2.0
// Decoding a batch allocates nothing for a record once its buffers are as large as they have to be.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <string>
#include <variant>
#include <vector>

#include <kclxx/record.hpp>

#include "protocol/decoder.hpp"
#include "protocol/fast_batch_parser.hpp"
#include "support/allocations.hpp"
#include "support/catch.hpp"

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> largest{SIZE_MAX};  // that succeeds

bool count(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return size > largest;
}

}  // namespace

using namespace kclxx;

namespace {

std::string batch_of(int records, bool is_spaced) {
  std::string line(is_spaced ? R"( {"action":"processRecords","records":[)"
                             : std::string(protocol::fast_batch_parser::prologue));
  for (int i = 0; i < records; ++i) {
    if (i > 0) line += ',';
    line += R"({"data":"QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9wcXJzdHV2d3h5eg==",)"
            R"("partitionKey":"a key that is longer than a small string","sequenceNumber":")" +
            std::to_string(1000 + i) +
            R"(","approximateArrivalTimestamp":1600000000000,"subSequenceNumber":0,)"
            R"("action":"record"})";
  }
  return line + R"(],"millisBehindLatest":12})";
}

/// Decodes lines with what it had for the ones before.
class reader {
 public:
  void make_room(std::size_t length) {
    if (capacity_ >= length) return;
    memory_ = std::make_unique<char[]>(length + protocol::decoder::padding);
    capacity_ = length;
  }
  /// How often it allocated.
  std::size_t decode(const std::string& line, std::size_t records) {
    make_room(line.size());
    std::memcpy(memory_.get(), line.data(), line.size());
    test::does_allocation_fail = count;
    const std::size_t before = allocations;
    const auto result = decoder_.decode(memory_.get(), line.size(), records_, arena_, replaced_);
    const std::size_t made = allocations - before;
    CHECK(std::holds_alternative<protocol::message>(result));
    CHECK(records_.size() == records);
    return made;
  }

 private:
  protocol::decoder decoder_;
  std::unique_ptr<char[]> memory_;
  std::size_t capacity_ = 0;
  std::vector<record> records_;
  std::deque<std::string> arena_;
  bool replaced_ = false;
};

}  // namespace

TEST_CASE("a batch that is no larger than an earlier one is decoded without an allocation",
          "[protocol]") {
  reader with;
  CHECK(with.decode(batch_of(1000, false), 1000) > 0);
  CHECK(with.decode(batch_of(1000, false), 1000) == 0);
  CHECK(with.decode(batch_of(1, false), 1) == 0);
}

TEST_CASE("a batch in another form than the daemon's allocates nothing for a record",
          "[protocol]") {
  reader with;
  with.decode(batch_of(1000, true), 1000);
  const std::size_t allocations_for_one = with.decode(batch_of(1, true), 1);
  CHECK(with.decode(batch_of(1000, true), 1000) == allocations_for_one);
}

TEST_CASE("a first batch allocates for the list of records, not for each", "[protocol]") {
  const bool is_spaced = GENERATE(false, true);
  CAPTURE(is_spaced);
  CHECK(reader().decode(batch_of(10'000, is_spaced), 10'000) < 40);
}

TEST_CASE("a line for which there is no memory is not a bad line", "[protocol]") {
  reader with;
  // Bytes that are not UTF-8 are replaced in a copy.
  const std::string line =
      R"({"action": "leaseLost", "more": ")" + std::string(1 << 20, '\xff') + "\"}";
  with.make_room(line.size());
  largest = 1 << 16;
  CHECK_THROWS_AS(with.decode(line, 0), std::bad_alloc);
  largest = SIZE_MAX;
  with.decode(line, 0);
}

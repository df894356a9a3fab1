// SPDX-License-Identifier: Apache-2.0
// The memory of batches: which of it is kept for the next one, and which is given back.
#include <cstddef>
#include <memory>
#include <vector>

#include "driver/line_decoder.hpp"
#include "support/catch.hpp"

using kclxx::driver::batch_memory;
using kclxx::driver::batch_memory_pool;

namespace {

/// What has been lent before is known by the room that it has for records.
std::shared_ptr<batch_memory> marked(batch_memory_pool& pool) {
  auto memory = pool.take();
  memory->records.reserve(10);
  return memory;
}

std::shared_ptr<batch_memory> large(batch_memory_pool& pool) {
  auto memory = marked(pool);
  memory->line.grow(2 * batch_memory::large);
  return memory;
}

std::size_t kept_in(batch_memory_pool& pool) {
  std::vector<std::shared_ptr<batch_memory>> all;
  std::size_t kept = 0;
  for (int i = 0; i < 4; ++i) {
    all.push_back(pool.take());
    if (all.back()->records.capacity() > 0) ++kept;
  }
  return kept;
}

}  // namespace

TEST_CASE("two are kept, however many were lent", "[driver][batch_memory]") {
  batch_memory_pool pool;
  {
    const auto first = marked(pool);
    const auto second = marked(pool);
    const auto third = marked(pool);
  }
  CHECK(kept_in(pool) == 2);
}

TEST_CASE("large memory is kept only while it is wanted", "[driver][batch_memory]") {
  batch_memory_pool pool;
  large(pool);
  CHECK(kept_in(pool) == 0);
  pool.keep_large();
  large(pool);
  CHECK(kept_in(pool) == 1);
  pool.release_large();
  CHECK(kept_in(pool) == 0);
  large(pool);
  CHECK(kept_in(pool) == 0);
}

TEST_CASE("memory is large by its records and by what was copied out of the line, too",
          "[driver][batch_memory]") {
  batch_memory memory;
  SECTION("records") { memory.records.reserve(batch_memory::large / sizeof(kclxx::record) + 1); }
  SECTION("copies") {
    memory.arena.emplace_back("a key");
    CHECK_FALSE(memory.is_large());
    memory.arena.front().reserve(batch_memory::large + 1);
  }
  CHECK(memory.is_large());
}

TEST_CASE("a line is read into the largest buffer that is kept", "[driver][batch_memory]") {
  batch_memory_pool pool;
  pool.keep_large();
  {
    // The last of these is the first that is given back.
    const auto one = GENERATE(true, false) ? large(pool) : marked(pool);
    const auto other = one->is_large() ? marked(pool) : large(pool);
  }
  kclxx::io::line_reader reader(std::size_t{1} << 30);
  pool.lend_line(reader);
  const auto first = pool.take();
  const auto second = pool.take();
  CHECK_FALSE((first->is_large() || second->is_large()));  // the reader has it
}

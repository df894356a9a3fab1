// SPDX-License-Identifier: Apache-2.0
// The memory of batches: which of it is kept for the next one, and which is given back.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <unistd.h>
#include <vector>

#include "driver/line_decoder.hpp"
#include "support/catch.hpp"

#if defined(__GLIBC__) && !defined(KCLXX_IS_SANITIZED)
#include <malloc.h>
#include <sys/mman.h>
#endif

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

#if defined(__GLIBC__) && !defined(KCLXX_IS_SANITIZED)
namespace {

/// Whether the system still has the page in the middle of what was at `begin`.
bool is_resident(const void* begin, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t middle = (reinterpret_cast<std::uintptr_t>(begin) + size / 2) / page * page;
  unsigned char state = 0;
  void* const where = reinterpret_cast<void*>(middle);  // NOLINT(performance-no-int-to-ptr)
  return ::mincore(where, page, &state) == 0 && (state & 1U) != 0;
}

}  // namespace

TEST_CASE("the memory of large vectors goes back to the system at once", "[driver][batch_memory]") {
  // As glibc sets them itself, once such a block was freed: the next is in the heap, and stays
  // there.
  REQUIRE(::mallopt(M_MMAP_THRESHOLD, 32 << 20) == 1);
  REQUIRE(::mallopt(M_TRIM_THRESHOLD, 1 << 30) == 1);
  batch_memory_pool pool;
  auto memory = pool.take();
  memory->records.reserve(4 * batch_memory::large / sizeof(kclxx::record) + 1);
  void* const begin = memory->records.data();
  std::memset(begin, 0, 4 * batch_memory::large);
  const std::vector<char> above(64 << 10);  // pins it; a small one could come from below
  REQUIRE(is_resident(begin, 4 * batch_memory::large));
  SECTION("when it is given back") { memory.reset(); }
  SECTION("when it was kept, and is released") {
    pool.keep_large();
    memory.reset();
    CHECK(is_resident(begin, 4 * batch_memory::large));
    pool.release_large();
  }
  CHECK_FALSE(is_resident(begin, 4 * batch_memory::large));
}
#endif

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

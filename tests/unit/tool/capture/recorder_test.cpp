// SPDX-License-Identifier: Apache-2.0
#include "tool/capture/recorder.hpp"

#include <atomic>
#include <cstddef>
#include <string>

#include "support/allocations.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

constexpr std::size_t long_line = std::size_t{8} << 20;
std::atomic<int> long_allocations = 0;

bool count(std::size_t size) {
  if (size >= long_line) ++long_allocations;
  return false;
}
bool ignore(std::size_t) { return false; }

}  // namespace

TEST_CASE("a recorder does not keep the memory of a long line", "[tool][capture]") {
  const kclxx::test::temporary_folder folder;
  kclxx::tool::recorder recorder(folder.path(), "child");
  const std::string line = "{\"a\":\"" + std::string(long_line, 'x') + "\"}\n";
  const auto allocations_of_line = [&] {
    long_allocations = 0;
    kclxx::test::does_allocation_fail = count;
    recorder.add(kclxx::transcript::entry_kind::daemon_line, line);
    kclxx::test::does_allocation_fail = ignore;
    return long_allocations.load();
  };
  const int first = allocations_of_line();
  CHECK(first > 0);
  CHECK(allocations_of_line() == first);
}

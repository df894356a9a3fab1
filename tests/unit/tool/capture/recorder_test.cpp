// SPDX-License-Identifier: Apache-2.0
#include "tool/capture/recorder.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <string>

#include "support/allocations.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"

namespace {

constexpr std::size_t long_line = std::size_t{8} << 20;
std::atomic<int> long_allocations = 0;

bool count(std::size_t size) {
  if (size >= long_line) ++long_allocations;
  return false;
}
bool ignore(std::size_t) { return false; }

}  // namespace

TEST_CASE("a line that is nested 500,000 levels deep is recorded as it is", "[tool][capture]") {
  const kclxx::test::temporary_folder folder;
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  for (const std::string& line :
       {"{\"action\":" + deep + "}", deep,
        "{\"action\":\"initialize\",\"shardId\":" + deep.substr(1) + "}"}) {
    kclxx::tool::recorder recorder(folder.path() / std::to_string(line.size()), "child");
    recorder.add(kclxx::transcript::entry_kind::daemon_line, line + "\n");
    recorder.add(kclxx::transcript::entry_kind::child_line, line + "\n");
    recorder.finish(kclxx::transcript::entry_kind::exit, 0);
    std::string text;
    for (const auto& file :
         std::filesystem::directory_iterator(folder.path() / std::to_string(line.size())))
      text = kclxx::test::read_file(file.path());
    CHECK(std::count(text.begin(), text.end(), '\n') == 4);
    CHECK((text.find(line) != text.rfind(line)));
  }
}

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

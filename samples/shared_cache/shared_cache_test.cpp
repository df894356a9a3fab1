// SPDX-License-Identifier: Apache-2.0
// Two shards under the test kit, with one shared state; and the pool under threads.
#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include <kclxx/testing/daemon.hpp>

#include "enrich.hpp"

TEST_CASE("shards share the table and the connections") {
  std::string name = std::filesystem::temp_directory_path() / "shared_cache.XXXXXX";
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  const std::filesystem::path directory = name;
  std::ofstream(directory / "table") << "key=value\n";
  {
    const auto shared = std::make_shared<shared_state>(directory / "table", directory / "out", 1);
    const auto make = [shared](const kclxx::shard_context& shard) {
      return std::make_unique<enrich>(shard, shared);
    };
    kclxx::testing::daemon first(make);
    kclxx::testing::daemon second(make);
    first.initialize("shard-0").deliver_records({{.data = "a", .partition_key = "key"}});
    second.initialize("shard-1").deliver_records({{.data = "b", .partition_key = "other"}});
    first.end_shard();
    second.end_shard();
  }
  std::ifstream in(directory / "out");
  const std::string written{std::istreambuf_iterator<char>(in), {}};
  CHECK(written == "shard-0 key value a\nshard-1 other unknown b\n");
  std::filesystem::remove_all(directory);
}

TEST_CASE("no more than its connections are in use, and each comes back") {
  struct counted {};
  std::vector<std::unique_ptr<counted>> two;
  two.push_back(std::make_unique<counted>());
  two.push_back(std::make_unique<counted>());
  connection_pool<counted> pool(std::move(two));
  std::atomic<int> in_use = 0;
  std::atomic<int> most = 0;
  std::vector<std::thread> shards;
  shards.reserve(8);
  for (int i = 0; i < 8; ++i) {
    shards.emplace_back([&] {
      for (int turn = 0; turn < 500; ++turn) {
        const auto connection = pool.take();
        const int now = ++in_use;
        for (int before = most; now > before && !most.compare_exchange_weak(before, now);) continue;
        std::this_thread::yield();
        --in_use;
      }
    });
  }
  for (std::thread& one : shards) one.join();
  CHECK(most == 2);
}

// SPDX-License-Identifier: Apache-2.0
// The log of commits over a store in memory: every fault at every step, with several workers.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kclxx/archive/commit_log.hpp>
#include <kclxx/archive/testing.hpp>
#include <kclxx/record.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/shard_context.hpp>

#include "support/catch.hpp"

namespace kclxx::test {

namespace {

using archive::testing::at_each_step;
using archive::testing::memory_store;
using numbers = std::vector<int>;

/// Records 1 to `count`.
class stream {
 public:
  explicit stream(int count) {
    for (int number = 1; number <= count; ++number) texts_.push_back(std::to_string(number));
    for (const std::string& text : texts_) {
      records_.emplace_back(record::fields{.data = text, .sequence_number = text});
    }
  }
  /// Records `first` to `last`, as far as there are any.
  [[nodiscard]] record_batch batch(std::size_t first, std::size_t last) const {
    return record_batch(records_, nullptr).slice(first - 1, last - first + 1);
  }

 private:
  std::vector<std::string> texts_;
  std::vector<record> records_;
};

/// Even and odd numbers are in files of their own.
std::vector<archive::file> files_of(const record_batch& records) {
  std::map<std::string, std::string> lines;
  for (const record& record : records) {
    const bool is_odd = (record.data().back() - '0') % 2 != 0;
    lines[is_odd ? "odd" : "even"] += std::string(record.data()) + '\n';
  }
  std::vector<archive::file> files;
  for (auto& [folder, content] : lines) files.push_back({folder, ".txt", std::move(content)});
  return files;
}

bool is_of_log(const std::string& name) { return name.starts_with("_kclxx/"); }

/// The numbers in all files, sorted.
numbers archived(const memory_store& store) {
  numbers found;
  for (const auto& [name, content] : store.objects()) {
    if (is_of_log(name)) continue;
    for (std::size_t begin = 0; begin < content.size(); begin = content.find('\n', begin) + 1) {
      found.push_back(std::stoi(content.substr(begin)));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

numbers up_to(int count) {
  numbers result(static_cast<std::size_t>(count));
  std::iota(result.begin(), result.end(), 1);
  return result;
}

bool has_duplicates(const numbers& sorted) {
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

/// The objects of the log that are no commits.
std::vector<std::string> staged(const memory_store& store) {
  std::vector<std::string> names;
  for (const auto& [name, content] : store.objects()) {
    if (is_of_log(name) && name.find('.') != std::string::npos) names.push_back(name);
  }
  return names;
}

/// A log of a shard with these names.
archive::commit_log log_over(std::shared_ptr<archive::store> store,
                             shard_context::fields names = {.shard_id = "shard-0",
                                                            .stream_name = "clicks",
                                                            .application_name = "archiver"}) {
  return {std::move(store),
          *detail::service_access::make<shard_context>(std::move(names), nullptr)};
}

struct crash {};

std::system_error full_disk() {
  return {std::make_error_code(std::errc::no_space_on_device), "played"};
}

}  // namespace

TEST_CASE("a commit's files have names of application, stream, shard and number, and one random") {
  const auto store = std::make_shared<memory_store>();
  auto log = log_over(store);
  log.commit(stream(2).batch(1, 2), files_of);
  std::vector<std::string> names;
  for (const auto& [name, content] : store->objects()) names.push_back(name);
  REQUIRE(names.size() == 3);
  CHECK(names[0] == "_kclxx/archiver/clicks/shard-0/000000000001");
  CHECK(names[1].starts_with("even/archiver.clicks.shard-0.000000000001."));
  CHECK(names[1].ends_with(".0.txt"));
  CHECK(names[2].starts_with("odd/archiver.clicks.shard-0.000000000001."));
}

TEST_CASE("streams, applications and shards in one store know nothing of each other") {
  const auto store = std::make_shared<memory_store>();
  const stream events(3);
  for (const char* application : {"a", "b"}) {
    for (const char* name : {"orders", "clicks"}) {
      for (const char* id : {"shard-0", "shard-1"}) {
        log_over(store, {.shard_id = id, .stream_name = name, .application_name = application})
            .commit(events.batch(1, 3), files_of);
      }
    }
  }
  CHECK(archived(*store).size() == std::size_t{8} * 3);
}

TEST_CASE("a worker that crashes at any step leaves nothing out, and nothing twice") {
  const stream events(5);
  const int steps =
      at_each_step([] { throw crash(); },
                   [&](const std::shared_ptr<memory_store>& store) {
                     for (std::size_t life = 0; life < 2; ++life) {
                       try {
                         auto log = log_over(store);
                         // The successor's batches are cut elsewhere.
                         for (std::size_t first = 1; first <= 5; first += 2 + life) {
                           log.commit(events.batch(first, first + 1 + life), files_of);
                         }
                       } catch (const crash&) {
                       }
                       CHECK_FALSE(has_duplicates(archived(*store)));
                     }
                     CHECK(archived(*store) == up_to(5));
                     CHECK(staged(*store).empty());
                   });
  CHECK(steps > 20);
}

TEST_CASE("an error at any step leaves all or none of the records, and a full store empties") {
  const stream events(4);
  at_each_step([] { throw full_disk(); },
               [&](const std::shared_ptr<memory_store>& store) {
                 auto log = log_over(store);
                 for (const std::size_t first : {1U, 3U}) {
                   const std::size_t last = first + 1;
                   try {
                     log.commit(events.batch(first, last), files_of);
                   } catch (const archive::outcome_unknown&) {
                   } catch (const std::system_error&) {
                     // A failed attempt must leave nothing, or the disk stays full.
                     for (const std::string& name : staged(*store)) {
                       CHECK(store->get(name.substr(0, name.find('.'))));
                     }
                   }
                   log.commit(events.batch(first, last), files_of);
                 }
                 CHECK(archived(*store) == up_to(4));
                 CHECK(staged(*store).empty());
               });
}

TEST_CASE("a request that arrives at any later step changes nothing") {
  const stream events(6);
  for (int delay = 1; delay < 40; ++delay) {
    int steps_since = 0;
    at_each_step(
        [&] {
          steps_since = 1;
          throw memory_store::under_way();
        },
        [&](const std::shared_ptr<memory_store>& store) {
          steps_since = 0;
          store->on_step = [&, store = store.get(), step = store->on_step] {
            if (steps_since > 0 && ++steps_since == delay) store->arrive();
            step();
          };
          auto log = log_over(store);
          for (std::size_t first = 1; first <= 6;) {
            try {
              log.commit(events.batch(first, first + 1), files_of);
              first += 2;
            } catch (const archive::outcome_unknown&) {
            }
          }
          store->on_step = [] {};
          store->arrive();
          CHECK(archived(*store) == up_to(6));
        });
  }
}

TEST_CASE("one worker archives each record, at whatever step several workers meet") {
  const stream events(24);
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
    const auto store = std::make_shared<memory_store>();
    int depth = 0;
    // What the store calls at a step: another worker lives there, so this one is suspended.
    std::function<void()> live;
    const auto step = [&] {
      if (chance(60)) store->arrive();
      if (depth < 4 && chance(12)) live();
      if (chance(40)) throw full_disk();
      if (chance(60)) throw crash();
    };
    live = [&] {
      ++depth;
      try {
        auto log = log_over(store);
        std::size_t first = 1 + random() % 8;
        for (int attempts = 0; attempts < 30 && first <= 24; ++attempts) {
          // A worker begins where a checkpoint was, which is never beyond what is committed.
          first = std::min(first, archived(*store).size() + 1);
          const std::size_t last = first + random() % 5;
          try {
            log.commit(events.batch(first, last), files_of);
            first = last + 1;
          } catch (const std::system_error&) {
          }
        }
      } catch (const crash&) {
      }
      --depth;
    };
    store->on_step = [&] {
      if (chance(50)) throw memory_store::under_way();
      step();
    };
    for (int worker = 0; worker < 6; ++worker) {
      live();
      CHECK_FALSE(has_duplicates(archived(*store)));
    }
    store->on_step = [] {};
    store->arrive();
    auto log = log_over(store);
    log.commit(events.batch(1, 24), files_of);
    CHECK(archived(*store) == up_to(24));
  }
}

TEST_CASE("a worker that was suspended while its number was forgotten commits nothing") {
  const stream events(40);
  const auto store = std::make_shared<memory_store>();
  auto suspended = log_over(store);
  suspended.commit(events.batch(1, 1), files_of);
  bool has_slept = false;
  store->on_step = [&] {
    if (has_slept || store->objects().count("_kclxx/archiver/clicks/shard-0/000000000002") > 0 ||
        staged(*store).empty()) {
      return;
    }
    has_slept = true;
    auto successor = log_over(store);
    for (std::size_t number = 2; number <= 40; ++number) {
      successor.commit(events.batch(number, number), files_of);
    }
    CHECK(store->objects().count("_kclxx/archiver/clicks/shard-0/000000000002") == 0);
  };
  suspended.commit(events.batch(2, 3), files_of);
  CHECK(has_slept);
  CHECK(archived(*store) == up_to(40));
  CHECK(store->list("_kclxx").size() == archive::commit_log::kept_commits);
}

TEST_CASE("a commit whose answer was lost is known by its content") {
  // As S3: a request without an answer is sent again.
  struct retrying_store final : archive::store {
    void put(std::span<const archive::object> objects) override { inner->put(objects); }
    bool put_if_absent(const archive::object& candidate) override {
      inner->put_if_absent(candidate);
      return inner->put_if_absent(candidate);
    }
    std::optional<std::string> get(const std::string& name) const override {
      if (!std::exchange(is_reachable, true)) throw full_disk();
      return inner->get(name);
    }
    void move(std::span<const archive::renaming> renamings) override { inner->move(renamings); }
    std::vector<std::string> list(const std::string& folder) const override {
      return inner->list(folder);
    }
    void remove(std::span<const std::string> names) override { inner->remove(names); }
    std::shared_ptr<memory_store> inner = std::make_shared<memory_store>();
    mutable bool is_reachable = true;  ///< false: the next get() fails
  };
  const auto store = std::make_shared<retrying_store>();
  auto log = log_over(store);
  log.commit(stream(2).batch(1, 2), files_of);
  CHECK(archived(*store->inner) == up_to(2));

  // When the content cannot be read, the commit keeps its files, and the next call finds it.
  store->is_reachable = false;
  CHECK_THROWS_AS(log.commit(stream(4).batch(3, 4), files_of), std::system_error);
  log.commit(stream(4).batch(3, 4), files_of);
  CHECK(archived(*store->inner) == up_to(4));
}

TEST_CASE("a worker that starts ends the attempt of an earlier one, and removes its objects") {
  const auto store = std::make_shared<memory_store>();
  store->put(std::vector<archive::object>{
      {"_kclxx/archiver/clicks/shard-0/000000000001.OF_ANOTHER_WORKER.0", "large"}});
  // No record is committed, since there may be no room for its file.
  auto log = log_over(store);
  CHECK(log.position() == sequence_position("TRIM_HORIZON"));
  CHECK(staged(*store).empty());
  log.commit(stream(2).batch(1, 2), files_of);
  CHECK(archived(*store) == up_to(2));
}

TEST_CASE("an object of the log's folder that no log has made is left alone") {
  const auto store = std::make_shared<memory_store>();
  const std::string folder = "_kclxx/archiver/clicks/shard-0/";
  const auto strays = {"99", "20261129.bak", "000000000002.txt", "000000000007.X.0"};
  for (const char* name : strays) store->put_if_absent({folder + name, "stray"});
  auto log = log_over(store);
  log.commit(stream(2).batch(1, 2), files_of);
  CHECK(archived(*store) == up_to(2));
  CHECK(store->get(folder + "000000000001"));
  for (const char* name : strays) CHECK(store->get(folder + name));
}

TEST_CASE("files of a commit that something else has removed are reported") {
  const auto store = std::make_shared<memory_store>();
  store->on_step = [&] {
    if (!store->objects().empty() && staged(*store).size() == 1 && archived(*store).empty() &&
        store->list("_kclxx").size() == 2) {
      throw crash();
    }
  };
  CHECK_THROWS_AS(log_over(store).commit(stream(1).batch(1, 1), files_of), crash);
  store->on_step = [] {};
  store->remove(staged(*store));
  CHECK_THROWS_AS(log_over(store).commit(stream(2).batch(1, 2), files_of), std::system_error);
}

TEST_CASE("an object of the log that is no commit is an outage") {
  for (const char* text : {"", "{}", R"({"format":2,"position":"1/0","files":{}})",
                           R"({"format":1,"position":"x","files":{}})"}) {
    const auto store = std::make_shared<memory_store>();
    store->put_if_absent({"_kclxx/archiver/clicks/shard-0/000000000001", text});
    auto log = log_over(store);
    try {
      log.commit(stream(1).batch(1, 1), files_of);
      FAIL("it was taken for one");
    } catch (const std::exception& error) {
      CHECK(archive::is_outage(error));
      CHECK_THAT(error.what(), Catch::Matchers::Contains("000000000001 is no commit"));
    }
  }
}

TEST_CASE("a folder that no store can have is the fault of its record") {
  auto log = log_over(std::make_shared<memory_store>());
  for (const std::string& folder : {std::string(256, 'a'), std::string("a//b"), std::string(),
                                    std::string("a/../b"), std::string("_kclxx/a")}) {
    try {
      log.commit(stream(1).batch(1, 1), [&](const record_batch&) {
        return std::vector<archive::file>{{folder, "", "x"}};
      });
      FAIL(folder + " was taken");
    } catch (const std::exception& error) {
      CHECK_FALSE(archive::is_outage(error));
    }
  }
  try {
    log.commit(stream(1).batch(1, 1), [](const record_batch&) {
      return std::vector<archive::file>{{"a", std::string(200, 's'), "x"}};
    });
    FAIL("a suffix that is too long was taken");
  } catch (const std::exception& error) {
    CHECK_FALSE(archive::is_outage(error));
  }
  CHECK(archive::partition("tenant", "a/b c%\xc3\xa4") == "tenant=a%2Fb%20c%25%C3%A4");
  CHECK_THROWS_AS(archive::partition("tenant", std::string(300, 'a')), std::length_error);
}

TEST_CASE("a name from outside becomes a safe part of a name, and different names stay different") {
  CHECK(archive::name_part("shardId-000000000003") == "shardId-000000000003");
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string("_x"), std::string("a/b"),
        std::string("a~b"), std::string(65, 'a'), std::string(66, 'a')}) {
    const std::string part = archive::name_part(name);
    CHECK(part != name);
    CHECK(part.size() <= 64);
    CHECK(part.find('/') == std::string::npos);
    CHECK(part.find_first_of("._") != 0);
  }
  CHECK(archive::name_part(std::string(65, 'a')) != archive::name_part(std::string(66, 'a')));
  CHECK(archive::name_part("a/b") != archive::name_part("a-b"));
}

TEST_CASE("a commit costs what cost_of says") {
  const auto store = std::make_shared<memory_store>();
  auto log = log_over(store);
  const stream events(40);
  for (std::size_t number = 1; number <= 20; number += 2) {
    log.commit(events.batch(number, number + 1), files_of);
  }
  std::uint64_t steps = 0;
  store->on_step = [&] { ++steps; };
  log.commit(events.batch(21, 22), files_of);
  constexpr archive::commit_cost cost = archive::cost_of(2);
  // Each change has two steps; a list has none.
  CHECK(steps == 2 * (cost.writes - 1 + cost.deletes));
}

}  // namespace kclxx::test

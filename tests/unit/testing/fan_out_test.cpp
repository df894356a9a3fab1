// SPDX-License-Identifier: Apache-2.0
// Work side by side inside a batch: docs/processing.md has the code that is here.
#include <algorithm>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"

namespace {

/// What a service was asked, and what was committed.
struct played_service {
  std::mutex mutex;
  std::vector<std::string> asked;
  std::vector<std::vector<std::string>> committed;
  std::string refused;

  void ask(const kclxx::record& one) {
    const std::lock_guard lock(mutex);
    if (one.data() == refused) throw std::runtime_error("503");
    asked.emplace_back(one.data());
  }
  void commit(const kclxx::record_batch& batch) {
    std::vector<std::string> texts;
    for (const kclxx::record& one : batch) texts.emplace_back(one.data());
    committed.push_back(std::move(texts));
  }
};

/// Calls the function for each record, `at_once` at a time, for those of one key in their order.
template <class Function>
void for_each_by_key(const kclxx::record_batch& batch, std::size_t at_once, Function function) {
  std::map<std::optional<std::string_view>, std::vector<kclxx::record>> by_key;
  for (const kclxx::record& one : batch) by_key[one.partition_key()].push_back(one);
  auto next = by_key.begin();
  std::mutex mutex;
  const auto take_keys = [&] {
    for (;;) {
      std::unique_lock lock(mutex);
      if (next == by_key.end()) return;
      const auto& of_key = (next++)->second;
      lock.unlock();
      for (const kclxx::record& one : of_key) function(one);
    }
  };
  std::vector<std::future<void>> threads;
  for (std::size_t i = 0; i < std::min(at_once, by_key.size()); ++i) {
    threads.push_back(std::async(std::launch::async, take_keys));
  }
  for (auto& thread : threads) thread.get();  // the others are waited for, whatever it throws
}

kclxx::processor_factory enrich(played_service& service) {
  return kclxx::batches(
      [&service](const kclxx::record_batch& batch) {
        for_each_by_key(batch, 64, [&](const kclxx::record& one) { service.ask(one); });
        service.commit(batch);
      },
      {}, {.max_records = 1000, .linger = std::chrono::seconds(1)});
}

std::vector<kclxx::record::fields> records_of_keys(const std::vector<std::string>& texts) {
  std::vector<kclxx::record::fields> records;
  for (const std::string& text : texts)
    records.push_back({.data = text, .partition_key = text.substr(0, 1)});
  return records;
}

std::vector<std::string> of_key(const std::vector<std::string>& texts, char key) {
  std::vector<std::string> found;
  for (const std::string& text : texts) {
    if (text[0] == key) found.push_back(text);
  }
  return found;
}

}  // namespace

TEST_CASE("a batch whose records are sent side by side is committed once all are sent",
          "[testing]") {
  played_service service;
  kclxx::testing::worker played(enrich(service));
  played.initialize().deliver_records(records_of_keys({"a1", "b1", "a2", "c1", "b2", "a3"}));
  CHECK(service.asked.empty());
  played.advance(std::chrono::seconds(1)).end_shard();
  INFO(played);
  CHECK(service.asked.size() == 6);
  CHECK(of_key(service.asked, 'a') == std::vector<std::string>{"a1", "a2", "a3"});
  CHECK(of_key(service.asked, 'b') == std::vector<std::string>{"b1", "b2"});
  CHECK(service.committed ==
        std::vector<std::vector<std::string>>{{"a1", "b1", "a2", "c1", "b2", "a3"}});
  CHECK(played.persisted() == kclxx::sequence_position("SHARD_END"));
}

TEST_CASE("a batch of which a record could not be sent is not committed", "[testing]") {
  played_service service;
  service.refused = "b1";
  kclxx::testing::worker played(enrich(service));
  played.initialize().deliver_records(records_of_keys({"a1", "b1"}));
  CHECK_THROWS_AS(played.advance(std::chrono::seconds(1)).end_shard(), std::logic_error);
  CHECK(service.committed == std::vector<std::vector<std::string>>{{"a1"}});
}

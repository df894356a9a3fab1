// SPDX-License-Identifier: Apache-2.0
// batches(): a batch at once, and how the record that fails is found.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

bool is_bad(const record& event) { return event.data().starts_with("bad"); }

/// Notes what it was called with. Fails for a batch with a bad record, without telling which.
struct silent_handler {
  int failures = 1'000'000;
  std::vector<strings> calls{};
  strings done{};

  void operator()(const record_batch& batch) {
    calls.push_back(payloads_of(batch));
    if (failures > 0 && std::any_of(batch.begin(), batch.end(), is_bad)) {
      --failures;
      throw std::runtime_error("something in it failed");
    }
    done.insert(done.end(), calls.back().begin(), calls.back().end());
  }
};

/// Processes what is before the bad record, and tells where that is.
struct telling_handler {
  int failures = 1'000'000;
  std::vector<strings> calls{};
  strings done{};

  void operator()(const record_batch& batch) {
    calls.push_back(payloads_of(batch));
    for (const record& event : batch) {
      if (is_bad(event) && failures-- > 0) {
        throw batch_failure(event.position(),
                            std::make_exception_ptr(std::runtime_error("it failed")));
      }
      done.emplace_back(event.data());
    }
  }
};

}  // namespace

TEST_CASE("a batch that the handler of batches keeps is warned of once", "[processing][batches]") {
  const std::string warning = "a copy of its record_batch is still in use";
  std::vector<record_batch> kept;
  testing::worker keeping(batches([&](record_batch batch) { kept.push_back(std::move(batch)); }));
  keeping.initialize().deliver({"a", "b"}).deliver({"c"});
  CHECK(count_logged(keeping, warning) == 1);
  testing::worker with(batches([](record_batch batch) { batch = batch.slice(1, 1); }));
  with.initialize().deliver({"a", "b"});
  CHECK(count_logged(with, warning) == 0);
}

TEST_CASE("a handler of batches can take the shard, or be made for it", "[processing][batches]") {
  strings seen;
  testing::worker with_shard(batches([&](record_batch batch, const shard_context& shard) {
    seen.push_back(shard.shard_id() + " " + std::to_string(batch.size()));
  }));
  with_shard.initialize("shard-1").deliver({"a", "b"});
  testing::worker with_factory(batches([&](const shard_context& shard) {
    return [id = std::make_unique<std::string>(shard.shard_id()), &seen](const record_batch&) {
      seen.push_back(*id);
    };
  }));
  with_factory.initialize("shard-2").deliver({"a"});
  CHECK(seen == strings{"shard-1 2", "shard-2"});
}

TEST_CASE("a batch that fails is halved until the bad record is alone, at no attempt's cost",
          "[processing][batches]") {
  silent_handler handler;
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(batches(std::ref(handler), parking(lot, 2, std::nullopt)), prompt());
  const auto begin = with.now();
  with.initialize().deliver({"a", "b", "c", "d", "e", "bad", "g", "h"});
  INFO(with);
  CHECK(handler.calls == std::vector<strings>{{"a", "b", "c", "d", "e", "bad", "g", "h"},
                                              {"a", "b", "c", "d"},
                                              {"e", "bad"},  // one of the last four fails
                                              {"e"},
                                              {"bad"},
                                              {"bad"},
                                              {"g", "h"}});
  CHECK(lot->all == std::vector<memory_lot::parked>{
                        {"bad", 2, "something in it failed", "something in it failed"}});
  CHECK(with.now() - begin <= 200ms);  // one wait, before the record's second attempt
  CHECK(with.persisted() == sequence_position("8"));
}

TEST_CASE("what is before a batch_failure is complete, and the rest is tried again",
          "[processing][batches]") {
  telling_handler handler{.failures = 1};
  testing::worker with(batches(std::ref(handler)), prompt());
  with.initialize().deliver({"a", "b", "bad", "d"});
  INFO(with);
  CHECK(handler.calls == std::vector<strings>{{"a", "b", "bad", "d"}, {"bad", "d"}});
  CHECK(handler.done == strings{"a", "b", "bad", "d"});
  CHECK(with.checkpoints().front() == sequence_position("2"));  // during the wait
  CHECK(with.persisted() == sequence_position("4"));
}

TEST_CASE("a batch_failure outside of the batch tells nothing: the batch is halved",
          "[processing][batches]") {
  const auto position =
      GENERATE(sequence_position("3"), sequence_position("9"), sequence_position("TRIM_HORIZON"));
  const auto lot = std::make_shared<memory_lot>();
  strings done;
  testing::worker with(batches(
                           [&](const record_batch& batch) {
                             if (batch.front().data() != "before" &&
                                 std::any_of(batch.begin(), batch.end(), is_bad)) {
                               throw batch_failure(position);
                             }
                             for (const auto& payload : payloads_of(batch)) done.push_back(payload);
                           },
                           parking(lot, 2, std::nullopt)),
                       prompt());
  with.initialize().deliver({"before", "before", "before"}).deliver({"a", "b", "bad", "d"});
  INFO(with);
  CHECK(lot->data() == strings{"bad"});
  CHECK(strings(done.begin() + 3, done.end()) == strings{"a", "b", "d"});
  CHECK(with.persisted() == sequence_position("7"));
}

TEST_CASE("a batch_failure describes itself", "[processing][batches]") {
  const sequence_position at("12", 3);
  CHECK(batch_failure(at).what() == std::string("the batch failed at 12/3"));
  CHECK(batch_failure(at, std::make_exception_ptr(std::runtime_error("no space"))).what() ==
        std::string("the batch failed at 12/3: no space"));
}

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
// batches(): a batch at once, how the record that fails is found, batches of which several records
// fail and, with batch_options, records of several calls in one batch.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

bool is_bad(const record& event) { return event.data().starts_with("bad"); }

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

TEST_CASE("a batch that fails is halved until the bad record is alone, at no attempt's cost",
          "[processing][batches]") {
  std::vector<strings> calls;
  const auto handle = [&](const record_batch& batch) {
    calls.push_back(payloads_of(batch));
    if (std::any_of(batch.begin(), batch.end(), is_bad)) {
      throw std::runtime_error("something in it failed");
    }
  };
  const auto lot = std::make_shared<memory_lot>();
  testing::worker with(batches(handle, parking(lot, 2, std::nullopt)), prompt());
  const auto begin = with.now();
  with.initialize().deliver({"a", "b", "c", "d", "e", "bad", "g", "h"});
  INFO(with);
  CHECK(calls == std::vector<strings>{{"a", "b", "c", "d", "e", "bad", "g", "h"},
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
  std::vector<strings> calls;
  testing::worker with(batches([&](const record_batch& batch) {
                         calls.push_back(payloads_of(batch));
                         if (calls.size() == 1) throw batch_failure(batch[2].position());
                       }),
                       prompt());
  with.initialize().deliver({"a", "b", "bad", "d"});
  INFO(with);
  CHECK(calls == std::vector<strings>{{"a", "b", "bad", "d"}, {"bad", "d"}});
  CHECK(with.checkpoints().front() == sequence_position("2"));  // during the wait
  CHECK(with.persisted() == sequence_position("4"));
}

TEST_CASE("a batch_failure outside of the batch tells nothing: the batch is halved",
          "[processing][batches]") {
  CHECK_THROWS_AS(batch_failure(std::vector<batch_failure::failed>{}), std::invalid_argument);
  const auto [failure, text] = GENERATE(table<batch_failure, std::string>({
      {batch_failure(sequence_position("3")), "the batch failed at 3/0"},
      {batch_failure(sequence_position("9")), "the batch failed at 9/0"},
      {batch_failure(sequence_position("TRIM_HORIZON")), "the batch failed at TRIM_HORIZON/0"},
      {batch_failure({{sequence_position("99")},
                      {sequence_position("6", 5)},
                      {sequence_position("TRIM_HORIZON")}}),
       "3 of the batch's records failed, the first at 99/0"},
  }));
  const auto lot = std::make_shared<memory_lot>();
  strings done;
  testing::worker with(batches(
                           [&, outside = failure](const record_batch& batch) {
                             if (batch.front().data() != "before" &&
                                 std::any_of(batch.begin(), batch.end(), is_bad)) {
                               throw outside;
                             }
                             for (const auto& payload : payloads_of(batch)) done.push_back(payload);
                           },
                           parking(lot, 2, std::nullopt)),
                       prompt());
  with.initialize().deliver({"before", "before", "before"}).deliver({"a", "b", "bad", "d"});
  INFO(with);
  CHECK(lot->data() == strings{"bad"});
  CHECK(lot->all.at(0).last_error == text);
  CHECK(strings(done.begin() + 3, done.end()) == strings{"a", "b", "d"});
  CHECK(with.persisted() == sequence_position("7"));
}

TEST_CASE("a batch_failure describes itself", "[processing][batches]") {
  const sequence_position at("12", 3);
  CHECK(batch_failure(at).what() == std::string("the batch failed at 12/3"));
  CHECK(batch_failure(at, std::make_exception_ptr(std::runtime_error("no space"))).what() ==
        std::string("the batch failed at 12/3: no space"));
}

namespace {

using calls = std::vector<strings>;

/// Notes what it was called with, and when.
struct noting_handler {
  std::shared_ptr<calls> seen = std::make_shared<calls>();
  void operator()(const record_batch& batch) const { seen->push_back(payloads_of(batch)); }
};

/// A daemon whose handler notes its calls.
struct gathering_daemon {
  explicit gathering_daemon(batch_options options, run_options with = prompt())
      : daemon(batches(handler, {}, options), std::move(with)) {
    daemon.initialize();
  }
  [[nodiscard]] const calls& seen() const { return *handler.seen; }
  [[nodiscard]] sequence_position persisted() const { return daemon.persisted(); }

  noting_handler handler;
  testing::worker daemon;
};

batch_failure::failed failed(const record& event, const char* why = "refused") {
  return {event.position(), std::make_exception_ptr(std::runtime_error(why))};
}

/// Names each record of a batch whose data begins with "bad", as long as `failures` lasts.
struct naming_handler {
  int failures = 1'000'000;
  calls seen{};

  void operator()(const record_batch& batch) {
    seen.push_back(payloads_of(batch));
    std::vector<batch_failure::failed> bad;
    for (const record& event : batch) {
      if (event.data().starts_with("bad") && failures-- > 0) bad.push_back(failed(event));
    }
    if (!bad.empty()) throw batch_failure(std::move(bad));
  }
};

/// A record with this key.
record::fields keyed(std::string_view key, std::string_view data, std::string_view number) {
  return {data, key, number, 0, {}};
}

}  // namespace

TEST_CASE("a batch has at most max_bytes, but for one record that is larger",
          "[processing][gathering]") {
  const std::uint64_t limit = 100;
  const std::string half(50, 'h');
  const std::string large(400, 'l');
  const strings numbers{"1", "2", "3", "4", "5", "6", "7"};
  const auto deliver = [&](testing::worker& to, std::size_t first, const strings& payloads) {
    std::vector<record::fields> records;
    for (const std::string& data : payloads) {
      records.push_back(keyed("key", data, numbers.at(first++)));
    }
    to.deliver_records(records);
  };
  gathering_daemon one({.max_bytes = limit, .linger = 1h});
  deliver(one.daemon, 0, {half, half});
  CHECK(one.seen() == calls{{half, half}});
  deliver(one.daemon, 2, {half, "s", half});
  CHECK(one.seen().back() == strings{half, "s"});
  deliver(one.daemon, 5, {large, "t"});
  CHECK(one.seen() == calls{{half, half}, {half, "s"}, {half}, {large}});
  one.daemon.request_shutdown();
  CHECK(one.seen().back() == strings{"t"});
  gathering_daemon other({.max_bytes = limit});
  deliver(other.daemon, 0, {half, half, half, large, large, "s", "t"});
  CHECK(other.seen() == calls{{half, half}, {half}, {large}, {large}, {"s", "t"}});
}

TEST_CASE("gathered records are handed over before they take more memory than 64 MiB",
          "[processing][gathering]") {
  const std::size_t size = GENERATE(as<std::size_t>(), 500, 30'000);
  const std::string data(size, 'x');
  const std::vector<std::string> call(size < 1'000 ? 10'000 : 400, data);
  std::size_t most = 0;
  testing::worker to(batches(
      [&](const record_batch& batch) { most = std::max(most, batch.size()); }, {}, {.linger = 1h}));
  to.initialize();
  for (int calls = 0; calls < 100 && most == 0; ++calls) to.deliver(call);
  REQUIRE(most > 0);
  // What a record takes at least: its data, its number, itself.
  CHECK(most * (size + sizeof(record)) <= std::size_t{64} << 20);
  CHECK(most * (size + size / 16 + 64 + 3 * sizeof(record) + 20) > std::size_t{63} << 20);
}

TEST_CASE("shutdown_requested and the shard's end hand over what is gathered",
          "[processing][gathering]") {
  gathering_daemon stopping({.linger = 1h});
  stopping.daemon.deliver({"a"}).deliver({"b"}).request_shutdown();
  CHECK(stopping.seen() == calls{{"a", "b"}});
  CHECK(stopping.persisted() == sequence_position("2"));
  gathering_daemon ending({.linger = 1h});
  const auto begin = ending.daemon.now();
  ending.daemon.deliver({"a"}).deliver({"b"}).end_shard();
  CHECK(ending.daemon.now() - begin < 1h);  // before the linger
  CHECK(ending.seen() == calls{{"a", "b"}});
  CHECK(ending.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE(
    "after a crash at most what was gathered, and handed over since the last checkpoint, "
    "is delivered again",
    "[processing][gathering]") {
  gathering_daemon one({.max_records = 3, .linger = 2s});
  one.daemon.deliver({"a", "b", "c"}).deliver({"d"}).advance(2s);  // "d" has no checkpoint yet
  one.daemon.deliver({"e"});                                       // it is persisted with this call
  CHECK(one.persisted() == sequence_position("4"));
  one.daemon.advance(2s).deliver({"f", "g", "h", "i"});
  CHECK(one.persisted() == sequence_position("8"));
  one.daemon.crash().resume();
  one.handler.seen->clear();
  one.daemon.deliver({"j", "k"});
  CHECK(one.seen() == calls{{"i", "j", "k"}});
}

TEST_CASE("options of batches that cannot work are refused", "[processing][gathering]") {
  const auto handler = [](const record_batch&) {};
  const auto refuses = [&](batch_options options, const std::string& why) {
    CHECK_THROWS_WITH(batches(handler, {}, options).require_valid(), "batch_options: " + why);
  };
  refuses({.max_records = 0}, "max_records is 0");
  refuses({.max_bytes = 0}, "max_bytes is 0");
  refuses({.linger = -1ms}, "linger is negative");
  CHECK_THROWS_AS(batches(handler, {}, {.linger = -1ms}).require_valid(), std::invalid_argument);
  gathering_daemon longest({.linger = std::chrono::milliseconds::max()});
  longest.daemon.deliver({"a"}).request_shutdown();
  CHECK(longest.seen() == calls{{"a"}});
}

TEST_CASE("observers see what is gathered as the window", "[processing][gathering]") {
  const auto seen = std::make_shared<seen_events>();
  gathering_daemon one({.linger = 1s}, prompt(seen));
  const auto delivered = one.daemon.now();
  one.daemon.deliver({"aa", "b"}).advance(1s);
  const observer::window_changed in_flight{2, 3, delivered, std::nullopt};
  CHECK(seen->windows ==
        std::vector<observer::window_changed>{in_flight,  // gathered, and then with the handler
                                              in_flight,
                                              {0, 0, std::nullopt, sequence_position("2")}});
}

TEST_CASE("what a batch_failure does not name is complete, the named records are tried alone",
          "[processing][gathering]") {
  naming_handler handler{.failures = 3};
  testing::worker with(batches(std::ref(handler)), prompt());
  with.initialize();
  const auto begin = with.now();
  with.deliver({"a", "bad1", "c", "bad2", "e"});
  INFO(with);
  CHECK(handler.seen == calls{{"a", "bad1", "c", "bad2", "e"}, {"bad1", "bad2"}, {"bad1"}});
  CHECK(with.checkpoints() ==
        std::vector<sequence_position>{sequence_position("1"), sequence_position("5")});
  CHECK(with.now() - begin >= 100ms);  // two waits
}

TEST_CASE("each record that a batch_failure names has its own attempts, and is parked alone",
          "[processing][gathering]") {
  const auto lot = std::make_shared<memory_lot>();
  calls seen;
  testing::worker with(batches(
                           [&](const record_batch& batch) {
                             seen.push_back(payloads_of(batch));
                             std::vector<batch_failure::failed> bad;
                             for (const record& event : batch) {
                               if (event.data() == "poison") {
                                 bad.push_back({event.position(),
                                                std::make_exception_ptr(permanent_error("never"))});
                               } else if (event.data().starts_with("bad")) {
                                 bad.push_back(failed(event));
                               }
                             }
                             std::reverse(bad.begin(), bad.end());  // in any order, and twice
                             if (!bad.empty()) bad.push_back(bad.back());
                             if (!bad.empty()) throw batch_failure(bad);
                           },
                           parking(lot, 2)),
                       prompt());
  with.initialize().deliver({"a", "poison", "bad1", "d", "bad2"}).deliver({"f"});
  INFO(with);
  CHECK(seen == calls{{"a", "poison", "bad1", "d", "bad2"}, {"bad1", "bad2"}, {"f"}});
  CHECK(lot->all == std::vector<memory_lot::parked>{{"poison", 1, "never", "never"},
                                                    {"bad1", 2, "refused", "refused"},
                                                    {"bad2", 2, "refused", "refused"}});
  CHECK(with.persisted() == sequence_position("6"));
}

TEST_CASE("with order::key no key and an empty key are two keys", "[processing][gathering]") {
  naming_handler handler{.failures = 1};
  testing::worker with(batches(std::ref(handler), {}, {.order = order::key}), prompt());
  with.initialize().deliver_records({{.data = "bad", .sequence_number = "1"},
                                     keyed("", "b", "2"),
                                     {.data = "c", .sequence_number = "3"}});
  CHECK(handler.seen == calls{{"bad", "b", "c"}, {"bad", "c"}});
}

TEST_CASE("when a named record ends the session, what is before the first is checkpointed",
          "[processing][gathering]") {
  naming_handler handler;
  testing::worker with(batches(std::ref(handler), {.max_attempts = 1}), prompt());
  with.initialize().deliver({"a", "bad1", "c", "bad2"});
  CHECK(with.exit_status() == exit_status::callback_failed);
  CHECK(with.persisted() == sequence_position("1"));
  CHECK_THROWS_WITH(std::rethrow_exception(with.thrown()), "refused");
}

TEST_CASE("the bad records of one call are parked with one call", "[processing][gathering]") {
  const auto lot = std::make_shared<memory_lot>();
  naming_handler handler;
  testing::worker with(batches(std::ref(handler), parking(lot, 1)), prompt());
  with.initialize().deliver({"bad1", "good", "bad2", "bad3"});
  CHECK(lot->data() == strings{"bad1", "bad2", "bad3"});
  CHECK(lot->calls == 1);
  CHECK(with.persisted() == sequence_position("4"));
}

}  // namespace kclxx::test

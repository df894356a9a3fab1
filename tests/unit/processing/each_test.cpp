// SPDX-License-Identifier: Apache-2.0
// each(): one record at a time, and what becomes of those that fail.
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

/// Counts the calls for each payload, and fails those that begin with "bad" that many times.
struct flaky {
  int failures = 1'000'000;
  std::map<std::string, int> calls{};
  strings done{};

  void operator()(const record& event) {
    const std::string data(event.data());
    const int call = ++calls[data];
    if (data.starts_with("bad") && call <= failures) throw std::runtime_error(data + " failed");
    done.push_back(data);
  }
};

std::shared_ptr<memory_lot> make_lot() { return std::make_shared<memory_lot>(); }

}  // namespace

TEST_CASE("a handler can take the shard, be move-only, and be made for each shard",
          "[processing][each]") {
  strings seen;
  const auto see = [&](const record& event, const shard_context& shard) {
    seen.push_back(std::string(event.data()) + "@" + shard.shard_id());
  };
  testing::worker with_shard(each(see));
  with_shard.initialize("shard-1").deliver({"a"});
  CHECK(seen == strings{"a@shard-1"});

  testing::worker with_move_only(
      each([prefix = std::make_unique<std::string>("only "), &seen](const record& event) {
        seen.push_back(*prefix + std::string(event.data()));
      }));
  with_move_only.initialize().deliver({"b"});
  CHECK(seen.back() == "only b");

  int connections = 0;
  testing::worker with_factory(each([&](const shard_context& shard) {
    ++connections;
    return
        [connection = std::make_unique<std::string>(shard.shard_id()), &seen](const record& event) {
          seen.push_back(std::string(event.data()) + " to " + *connection);
        };
  }));
  CHECK(connections == 0);
  with_factory.initialize("shard-2").deliver({"c", "d"});
  CHECK(connections == 1);
  CHECK(seen.back() == "d to shard-2");
}

TEST_CASE("during a long batch a checkpoint is requested once a second", "[processing][each]") {
  const auto [records, each_takes, least, most] =
      GENERATE(table<std::size_t, std::chrono::milliseconds, std::size_t, std::size_t>(
          {{100, 100ms, 8, 12}, {5, 1s, 5, 5}}));
  std::optional<testing::worker> with;
  with.emplace(each([&, time = each_takes](const record&) { with->advance(time); }), prompt());
  with->initialize().deliver(strings(records, "slow"));
  INFO(*with);
  CHECK(with->checkpoints().size() >= least);
  CHECK(with->checkpoints().size() <= most);
  CHECK(with->persisted() == sequence_position(std::to_string(records)));
}

TEST_CASE("a retry ends within 100 ms of the stop token, and the record is not complete",
          "[processing][each]") {
  flaky handler;
  testing::worker with(each(std::ref(handler), {.initial_backoff = 5s, .max_backoff = 60s}));
  with.initialize();
  const auto begin = with.now();
  with.lose_lease_silently();  // the checkpoint of "a" tells, during the wait
  with.deliver({"a", "bad", "c"});
  INFO(with);
  CHECK(with.stop_requested());
  CHECK(with.now() - begin <= 100ms);
  CHECK(handler.calls == std::map<std::string, int>{{"a", 1}, {"bad", 1}});
  CHECK(with.checkpoints().empty());
  CHECK_FALSE(with.exit_status());
  with.lose_lease();
  CHECK(with.exit_status() == exit_status::ok);
}

TEST_CASE("a failed record that is too old is not tried again; one that succeeds may be old",
          "[processing][each]") {
  flaky handler;
  const auto lot = make_lot();
  testing::worker with(
      each(std::ref(handler), {.max_age = 60s, .bad_record = bad_record::park, .lot = lot}));
  with.initialize();
  const auto begin = with.now();
  with.deliver({"bad1"});  // arrives now
  CHECK(with.now() - begin > 60s);
  CHECK(with.now() - begin < 66s);
  with.deliver_records({{.data = "old", .approximate_arrival_timestamp = 0ms},
                        {.data = "bad2", .approximate_arrival_timestamp = 0ms}});
  CHECK(lot->data() == strings{"bad1", "bad2"});
  CHECK(handler.calls["bad2"] == 1);
  CHECK(handler.done == strings{"old"});
  CHECK(logged(with, "(older than 60 s)"));
}

TEST_CASE("a lost lease is not a failure of the record: nothing is tried again, parked or counted",
          "[processing][each]") {
  const auto code = GENERATE(std::error_code(errc::lease_lost), std::error_code(errc::fenced),
                             std::error_code(checkpoint_errc::shutdown));
  int calls = 0;
  const auto lot = make_lot();
  testing::worker with(each(
      [&](const record&) {
        ++calls;
        throw std::system_error(code);
      },
      {.bad_record = bad_record::park, .lot = lot}));
  with.initialize().deliver({"a", "b"});
  INFO(with);
  CHECK(calls == 1);
  CHECK(lot->all.empty());
  CHECK_FALSE(with.exit_status());
  CHECK(with.checkpoints().empty());
}

TEST_CASE("with attempts without end, the log tells which record holds the shard",
          "[processing][each]") {
  std::optional<testing::worker> with;
  int calls = 0;
  const auto fail = [&](const record& event) {
    if (event.data() != "bad") return;
    if (++calls == 100) with->end_input();
    throw std::runtime_error("the table is gone");
  };
  with.emplace(each(fail, {.breaker = {}}), prompt());
  with->initialize();
  const auto begin = with->now();
  with->deliver({"a", "bad", "c"});
  CHECK(calls == 100);
  CHECK(with->persisted() == sequence_position("1"));
  const auto minutes = std::chrono::floor<std::chrono::minutes>(with->now() - begin).count();
  CHECK(minutes >= 4);
  CHECK(count_logged(*with, "at record 2/0 (partition key 'key') failed: ") ==
        static_cast<std::size_t>(minutes) + 1);
}

TEST_CASE("observers receive each attempt, retry and parked record", "[processing][each]") {
  struct seen_in_order final : observer {
    void on_event(const event_source&, const shard_event& event) override {
      if (const auto* tried = std::get_if<record_attempted>(&event)) {
        add("attempt", tried->position, tried->attempt, tried->error);
        if (tried->position == sequence_position("1")) CHECK(tried->duration == 70ms);
      } else if (const auto* retried = std::get_if<record_retried>(&event)) {
        CHECK(retried->delay >= 100ms);
        add("retry", retried->position, retried->attempt, retried->error);
      } else if (const auto* parked = std::get_if<record_parked>(&event)) {
        add("parked", parked->position, parked->attempts, parked->error);
      } else if (const auto* skipped = std::get_if<record_skipped>(&event)) {
        add("skipped", skipped->position, skipped->attempts, skipped->error);
      }
    }
    void add(const char* what, const sequence_position& at, int attempt, const std::string& error) {
      seen.push_back(what + (" " + to_string(at)) + " " + std::to_string(attempt) +
                     (error.empty() ? "" : " " + error));
    }
    strings seen{};
  };
  const auto observer = std::make_shared<seen_in_order>();
  std::optional<testing::worker> with;
  const auto handler = [&](const record& event) {
    with->advance(70ms);
    if (event.data() == "bad") throw std::runtime_error("no");
  };
  const auto what = GENERATE(bad_record::park, bad_record::skip);
  with.emplace(each(handler, {.max_attempts = 2, .bad_record = what, .lot = make_lot()}),
               prompt(observer));
  with->initialize().deliver({"a", "bad", "c"});
  CHECK(observer->seen == strings{"attempt 1/0 1", "attempt 2/0 1 no", "retry 2/0 2 no",
                                  "attempt 2/0 2 no",
                                  what == bad_record::park ? "parked 2/0 2 no" : "skipped 2/0 2 no",
                                  "attempt 3/0 1"});
}

TEST_CASE("a policy that makes no sense is refused where the processor factory is made",
          "[processing][policy]") {
  const auto [policy, text] = GENERATE(table<failure_policy, std::string>({
      {{.max_attempts = 0}, "max_attempts is below 1; unset is without end"},
      {{.initial_backoff = -1ms}, "a backoff is negative"},
      {{.max_backoff = -1ms}, "a backoff is negative"},
      {{.max_age = -1s}, "max_age is negative"},
      {{.breaker = circuit_breaker{.failures = 0}},
       "breaker->failures is below 1; unset is no breaker"},
      {{.breaker = circuit_breaker{.max_wait = -1ms}}, "breaker->max_wait is negative"},
  }));
  CHECK_THROWS_WITH(each([](const record&) {}, policy).require_valid(), "failure_policy: " + text);
  CHECK_THROWS_WITH(batches([](const record_batch&) {}, policy).require_valid(),
                    "failure_policy: " + text);
  CHECK_THROWS_WITH(parallel([](const record&) {}, policy).require_valid(),
                    "failure_policy: " + text);
  CHECK_THROWS_WITH(parallel([](completion) {}, policy).require_valid(), "failure_policy: " + text);
}

TEST_CASE("with an empty function as its handler the processor factory is not valid",
          "[processing][policy]") {
  const std::string text = "a handler is an empty function";
  const std::function<void(const record&)> none;
  CHECK_THROWS_WITH(each(none).require_valid(), text);
  CHECK_THROWS_WITH(each(static_cast<void (*)(const record&)>(nullptr)).require_valid(), text);
  CHECK_THROWS_WITH(batches(std::function<void(record_batch)>()).require_valid(), text);
  CHECK_THROWS_WITH(parallel(none).require_valid(), text);
  CHECK_THROWS_WITH(parallel(std::function<void(completion)>()).require_valid(), text);
  testing::worker with(
      each([](const shard_context&) { return std::function<void(const record&)>(); }));
  with.initialize();
  CHECK(logged(with, "initialize failed: " + text));
}

TEST_CASE("any exception is a failure of its record, whatever text it has", "[processing][each]") {
  struct without_text final : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return nullptr; }
  };
  const auto lot = make_lot();
  testing::worker with(each(
                           [](const record& event) {
                             if (event.data() == "none") throw without_text();
                             if (event.data() == "42") throw 42;  // NOLINT: no std::exception
                             throw std::runtime_error(std::string(5'000'000, 'x'));
                           },
                           parking(lot, 1, std::nullopt)),
                       prompt());
  with.initialize().deliver({"none", "long", "42"});
  REQUIRE(lot->all.size() == 3);
  CHECK(lot->all[0].last_error == "a std::exception without a text");
  CHECK(lot->all[1].last_error == std::string(4096, 'x'));
  CHECK(lot->all[2].last_error == "an exception that is not a std::exception");
}

}  // namespace kclxx::test

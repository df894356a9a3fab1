// SPDX-License-Identifier: Apache-2.0
// Waiting, retries and faults in the test kit's virtual time.
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "support/run_options.hpp"
#include "support/text.hpp"

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

TEST_CASE("timers run between callbacks, while the shard is idle, and never during one",
          "[testing]") {
  std::vector<std::string> calls;
  testing::worker* clock = nullptr;
  const auto script = [&](const std::string& callback, const checkpointer*) {
    calls.push_back(callback);
    if (callback == "process_records") {
      clock->advance(2500ms);
      calls.emplace_back("returns");
    }
  };
  auto worker = scripted(script, manual());
  clock = &worker;
  worker.initialize();
  const auto* context = worker.processor<recording_processor>().context;
  const auto timer = context->every(1s, [&] { calls.emplace_back("every"); });
  context->after(1500ms, [&] { calls.emplace_back("after"); });
  worker.advance(1s).deliver({"a"});
  CHECK(calls == std::vector<std::string>{"initialize", "every", "process_records", "returns",
                                          "after", "every"});
  calls.clear();
  worker.advance(2s);
  CHECK(calls == std::vector<std::string>{"every", "every"});
  context->cancel(timer);
  worker.advance(10s);
  CHECK(calls.size() == 2);
}

TEST_CASE("events carry the virtual time, and durations in it", "[testing][observer]") {
  struct collecting final : observer {
    void on_event(const event_source& source, const shard_event& event) override {
      sources.push_back(source);
      if (const auto* one = std::get_if<callback_ended>(&event)) ended.push_back(*one);
    }
    std::vector<event_source> sources{};
    std::vector<callback_ended> ended{};
  };
  const auto seen = std::make_shared<collecting>();
  testing::worker played(
      each([](const record&, const shard_context& shard) { shard.sleep_for(3s); }), prompt(seen));
  played.initialize().advance(1min).deliver({"a"});
  using kind = observer::callback_kind;
  CHECK(seen->ended == std::vector<observer::callback_ended>{{kind::initialize, 0ns},
                                                             {kind::process_records, 3s}});
  CHECK(seen->sources.back().time - seen->sources.front().time == 63s);
  CHECK(seen->sources.back().date - seen->sources.front().date == 63s);
}

TEST_CASE("between two callbacks a wait ends by its deadline, or is refused", "[testing]") {
  auto worker = scripted({}, manual());
  worker.initialize().deliver({"a"});
  auto& handle = *worker.processor<recording_processor>().handle;
  const auto before = worker.now();
  std::error_code ec;
  handle.checkpoint_until({}, before + 3s, ec);
  CHECK(ec == errc::timed_out);
  CHECK(worker.now() - before == 3s);
  worker.deliver({});  // the position stayed pending
  CHECK(worker.persisted() == sequence_position("1"));
  handle.checkpoint();  // persisted already
  worker.deliver({"b"});
  CHECK_THROWS_AS(handle.checkpoint(), std::logic_error);
  CHECK(refusal([&] {
          handle.checkpoint(sequence_position("2"));
        }).find("checkpoint(2/0) waits for the daemon") == 0);
  worker.deliver({});
  CHECK(worker.persisted() == sequence_position("2"));
}

TEST_CASE("a call from another thread throws there, and the next one from the test throws it again",
          "[testing]") {
  auto worker = scripted({}, manual());
  worker.initialize().deliver({"a"});
  checkpointer handle = *worker.processor<recording_processor>().handle;
  std::string request;
  std::string wait;
  std::thread([&] {
    request = refusal([&] { handle.async_checkpoint(); });
    std::error_code ec;
    wait = refusal([&] { handle.checkpoint({}, ec); });
  }).join();
  CHECK(request.find("async_checkpoint() was called on another thread") == 0);
  CHECK(wait.find("checkpoint() was called on another thread") == 0);
  CHECK(refusal([&] { worker.deliver({}); }).find("checkpoint() was called on another thread") ==
        0);
  worker.deliver({});  // reported once
  std::string why;
  std::thread([&] { why = refusal([&] { worker.advance(1s); }); }).join();
  CHECK(why.find("advance was called on another thread") == 0);
  CHECK(worker.attempts().empty());
}

TEST_CASE("a function of the kit in a callback is refused there and at its end", "[testing]") {
  std::optional<testing::worker> worker;
  worker.emplace([&](record_batch) { worker->deliver({"b"}); });
  worker->initialize();
  CHECK_THROWS_WITH(worker->deliver({"a"}),
                    "deliver: a callback runs, and the daemon waits until it has returned");
  CHECK(worker->exit_status() == exit_status::callback_failed);
}

TEST_CASE("a sleep that nothing can end is refused", "[testing][endless]") {
  testing::worker worker(each([](const record&, const shard_context& shard) {
    shard.sleep_for(shard_context::clock::duration::max());
  }));
  CHECK_THROWS_WITH(worker.initialize().deliver({"a"}),
                    Contains("waits for a stop, and nothing can bring it"));
}

TEST_CASE("the seed varies the waits of all forms, and repeats them", "[testing]") {
  const auto waits = [](const processor_factory& factory, std::uint32_t seed) {
    testing::worker worker(factory, {}, {.seed = seed});
    const auto begin = worker.initialize().now();
    worker.deliver({"a"}).request_shutdown();
    return worker.now() - begin;
  };
  int calls = 0;
  const auto fails_twice = [&] {
    if (++calls % 3 != 0) throw std::runtime_error("away");
  };
  for (const auto& factory :
       std::vector<processor_factory>{each([&](const record&) { fails_twice(); }),
                                      batches([&](const record_batch&) { fails_twice(); }),
                                      parallel([&](const record&) { fails_twice(); })}) {
    CHECK(waits(factory, 1) == waits(factory, 1));
    CHECK(waits(factory, 1) != waits(factory, 2));
  }
}

TEST_CASE("a failure without an exception is refused", "[testing][seam]") {
  testing::worker worker([](const shard_context& shard) {
    CHECK_THROWS_AS(shard.fail(nullptr), std::invalid_argument);
    return std::make_unique<recording_processor>(shard);
  });
  worker.initialize();
}

// What never ends, or comes from another thread, is an error of the test instead of a hang.
namespace {

const failure_policy without_end{};

void fail(const record&) { throw std::runtime_error("database is locked"); }
void fail_later(completion done) { done.fail("database is locked"); }

std::vector<std::pair<std::string, processor_factory>> every_form(const failure_policy& policy) {
  return {{"each", each(fail, policy)},
          {"batches",
           batches([](const record_batch&) { throw std::runtime_error("database is locked"); },
                   policy)},
          {"parallel", parallel(fail, policy, {.window_records = 1})},
          {"completions", parallel(fail_later, policy, {.window_records = 1})}};
}

}  // namespace

TEST_CASE("a record that is retried without end ends the action with the last error",
          "[testing][endless]") {
  for (const auto& [name, factory] : every_form(without_end)) {
    INFO(name);
    testing::worker played(factory);
    played.initialize();
    const std::string why = refusal([&] { played.deliver({"a", "b"}); });
    CHECK(contains(why, "48 hours of virtual time have passed without progress"));
    CHECK(contains(why, "database is locked"));
    CHECK(contains(played.dialogue(), why.substr(0, 40)));
    CHECK(refusal([&] { played.deliver({}); }) ==
          "deliver: the child crashed; resume() starts a successor");
  }
}

TEST_CASE("retries without a backoff end the action, too", "[testing][endless]") {
  failure_policy policy = without_end;
  policy.initial_backoff = policy.max_backoff = 0ms;
  for (const auto& [name, factory] : every_form(policy)) {
    INFO(name);
    // One record opens no circuit of `parallel`, so its retries stay a millisecond apart.
    testing::worker played(factory, {}, {.idle_limit = 10s});
    played.initialize();
    CHECK(contains(refusal([&] { played.deliver({"a", "b"}); }), "database is locked"));
  }
  // Without a breaker no hours pass: a million waits end it, that for each retry and those of the
  // handler, which are quicker than failures.
  policy.breaker.reset();
  int attempts = 0;
  testing::worker played(each(
      [&](const record& event, const shard_context& shard) {
        ++attempts;
        for (int waits = 1; waits < 20; ++waits) shard.sleep_for(1ms);
        fail(event);
      },
      policy));
  played.initialize();
  CHECK(contains(refusal([&] { played.deliver({"a", "b"}); }), "times without progress"));
  CHECK(attempts <= 1'000'000 / 20 + 1);
}

TEST_CASE("the limit and advance take the longest time there is", "[testing][endless]") {
  testing::worker played([](const record_batch&) {}, {},
                         {.idle_limit = std::chrono::milliseconds::max()});
  const auto begin = played.initialize().now();
  played.deliver({"a"}).advance(std::chrono::milliseconds::max());
  CHECK(played.persisted() == sequence_position("1"));
  CHECK(played.now() - begin > 24h * 365);
}

TEST_CASE("the limit is an option, for a policy that retries for days", "[testing][endless]") {
  const failure_policy for_three_days{.max_attempts = 1'000'000'000,
                                      .max_backoff = 1min,
                                      .max_age = 72h,
                                      .bad_record = bad_record::skip};
  testing::worker impatient(each(fail, for_three_days));
  impatient.initialize();
  CHECK_THROWS_AS(impatient.deliver({"a"}), std::logic_error);
  testing::worker patient(each(fail, for_three_days), {}, {.idle_limit = 7 * 24h});
  patient.initialize().deliver({"a"}).request_shutdown();
  CHECK(patient.persisted() == sequence_position("1"));
}

TEST_CASE("a task that starts itself again ends the action", "[testing][endless]") {
  std::unique_ptr<detail::thread_pool> pool;
  std::function<void()> again = [&] { pool->post(again); };
  for (const bool is_waiting : {false, true}) {
    testing::worker played(each([&](const record&, const shard_context& shard) {
      pool = detail::service_access::of(shard)->make_thread_pool(1);
      again();
      if (is_waiting) shard.sleep_for(1s);
    }));
    played.initialize();
    const std::string why = refusal([&] { played.deliver({"a"}); });
    CHECK(contains(why, "times without progress and without virtual time passing"));
    CHECK(refusal([&] { played.deliver({}); }) ==
          "deliver: the child crashed; resume() starts a successor");
    pool.reset();
  }
}

TEST_CASE("a timer, a task or a failure from another thread is refused at the end of the action",
          "[testing][endless]") {
  const shard_context* context = nullptr;
  testing::worker played([&](const shard_context& shard) {
    context = &shard;
    return std::make_unique<recording_processor>(shard);
  });
  played.initialize();
  int calls = 0;
  const auto pool = detail::service_access::of(*context)->make_thread_pool(1);
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { context->after(0ms, [&] { ++calls; }); }, [&] { pool->post([&] { ++calls; }); },
           [&] { detail::service_access::of(*context)->notify(); },
           [&] { context->fail(std::make_exception_ptr(std::runtime_error("elsewhere"))); }}) {
    std::thread(call).join();
    CHECK(contains(refusal([&] { played.advance(1s); }), "was called on another thread"));
  }
  played.advance(1s);
  CHECK(calls == 0);
  CHECK_FALSE(played.exit_status());
}

// SPDX-License-Identifier: Apache-2.0
// What never ends, or comes from another thread, is an error of the test instead of a hang.
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "support/text.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using testing::worker;
using namespace std::chrono_literals;

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

TEST_CASE("a record that is retried without end ends the action with the last error",
          "[testing][endless]") {
  for (const auto& [name, factory] : every_form(without_end)) {
    INFO(name);
    worker played(factory);
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
    worker played(factory, {}, {.idle_limit = 10s});
    played.initialize();
    CHECK(contains(refusal([&] { played.deliver({"a", "b"}); }), "database is locked"));
  }
  // Without a breaker no hours pass: a million waits end it, that for each retry and those of the
  // handler, which are quicker than failures.
  policy.breaker.reset();
  int attempts = 0;
  worker played(each(
      [&](const record& one, const shard_context& shard) {
        ++attempts;
        for (int waits = 1; waits < 20; ++waits) shard.sleep_for(1ms);
        fail(one);
      },
      policy));
  played.initialize();
  CHECK(contains(refusal([&] { played.deliver({"a", "b"}); }), "times without progress"));
  CHECK(attempts <= 1'000'000 / 20 + 1);
}

TEST_CASE("the limit and advance take the longest time there is", "[testing][endless]") {
  worker played([](const record_batch&) {}, {}, {.idle_limit = std::chrono::milliseconds::max()});
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
  worker impatient(each(fail, for_three_days));
  impatient.initialize();
  CHECK_THROWS_AS(impatient.deliver({"a"}), std::logic_error);
  worker patient(each(fail, for_three_days), {}, {.idle_limit = 7 * 24h});
  patient.initialize().deliver({"a"}).request_shutdown();
  CHECK(patient.persisted() == sequence_position("1"));
}

TEST_CASE("a task that starts itself again ends the action", "[testing][endless]") {
  std::unique_ptr<detail::thread_pool> pool;
  std::function<void()> again = [&] { pool->post(again); };
  for (const bool is_waiting : {false, true}) {
    worker played(each([&](const record&, const shard_context& shard) {
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
  worker played([&](const shard_context& shard) {
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

}  // namespace

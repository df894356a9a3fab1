// SPDX-License-Identifier: Apache-2.0
// Waiting, retries and faults in the test kit's virtual time.
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
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

namespace {

testing::worker manual_worker(const recording_processor::step& script,
                              const session_options& options = manual()) {
  return scripted(script, options);
}

}  // namespace

TEST_CASE("timers run between callbacks, while the shard is idle, and never during one",
          "[testing]") {
  std::vector<std::string> calls;
  testing::worker* clock = nullptr;
  auto worker = manual_worker([&](const std::string& callback, const checkpointer*) {
    calls.push_back(callback);
    if (callback == "process_records") {
      clock->advance(2500ms);
      calls.emplace_back("returns");
    }
  });
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
  auto worker = manual_worker({});
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
  auto worker = manual_worker({});
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


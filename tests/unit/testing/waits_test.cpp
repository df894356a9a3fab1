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
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "support/run_options.hpp"
#include "support/text.hpp"

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

namespace {

testing::daemon manual_daemon(const recording_processor::step& script,
                              const session_options& options = manual()) {
  return scripted(script, options);
}

}  // namespace

TEST_CASE("timers run between callbacks, while the shard is idle, and never during one",
          "[testing]") {
  std::vector<std::string> calls;
  testing::daemon* clock = nullptr;
  auto daemon = manual_daemon([&](const std::string& callback, const checkpointer*) {
    calls.push_back(callback);
    if (callback == "process_records") {
      clock->advance(2500ms);
      calls.emplace_back("returns");
    }
  });
  clock = &daemon;
  daemon.initialize();
  const auto* context = daemon.processor<recording_processor>().context;
  const auto timer = context->every(1s, [&] { calls.emplace_back("every"); });
  context->after(1500ms, [&] { calls.emplace_back("after"); });
  daemon.advance(1s).deliver({"a"});
  CHECK(calls == std::vector<std::string>{"initialize", "every", "process_records", "returns",
                                          "after", "every"});
  calls.clear();
  daemon.advance(2s);
  CHECK(calls == std::vector<std::string>{"every", "every"});
  context->cancel(timer);
  daemon.advance(10s);
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
  testing::daemon played(
      each([](const record&, const shard_context& shard) { shard.sleep_for(3s); }), prompt(seen));
  played.initialize().advance(1min).deliver({"a"});
  using kind = observer::callback_kind;
  CHECK(seen->ended == std::vector<observer::callback_ended>{{kind::initialize, 0ns},
                                                             {kind::process_records, 3s}});
  CHECK(seen->sources.back().time - seen->sources.front().time == 63s);
  CHECK(seen->sources.back().date - seen->sources.front().date == 63s);
}

TEST_CASE("between two callbacks a wait ends by its deadline, or is refused", "[testing]") {
  auto daemon = manual_daemon({});
  daemon.initialize().deliver({"a"});
  auto& handle = *daemon.processor<recording_processor>().handle;
  const auto before = daemon.now();
  std::error_code ec;
  handle.checkpoint_until({}, before + 3s, ec);
  CHECK(ec == errc::timed_out);
  CHECK(daemon.now() - before == 3s);
  daemon.deliver({});  // the position stayed pending
  CHECK(daemon.persisted() == sequence_position("1"));
  handle.checkpoint();  // persisted already
  daemon.deliver({"b"});
  CHECK_THROWS_AS(handle.checkpoint(), std::logic_error);
  CHECK(refusal([&] {
          handle.checkpoint(sequence_position("2"));
        }).find("checkpoint(2/0) waits for the daemon") == 0);
  daemon.deliver({});
  CHECK(daemon.persisted() == sequence_position("2"));
}

TEST_CASE("a call from another thread throws there, and the next one from the test throws it again",
          "[testing]") {
  auto daemon = manual_daemon({});
  daemon.initialize().deliver({"a"});
  checkpointer handle = *daemon.processor<recording_processor>().handle;
  std::string request;
  std::string wait;
  std::thread([&] {
    request = refusal([&] { handle.async_checkpoint(); });
    std::error_code ec;
    wait = refusal([&] { handle.checkpoint({}, ec); });
  }).join();
  CHECK(request.find("async_checkpoint() was called on another thread") == 0);
  CHECK(wait.find("checkpoint() was called on another thread") == 0);
  CHECK(refusal([&] { daemon.deliver({}); }).find("checkpoint() was called on another thread") ==
        0);
  daemon.deliver({});  // reported once
  std::string why;
  std::thread([&] { why = refusal([&] { daemon.advance(1s); }); }).join();
  CHECK(why.find("advance was called on another thread") == 0);
  CHECK(daemon.attempts().empty());
}

TEST_CASE("a function of the kit in a callback is refused there and at its end", "[testing]") {
  std::optional<testing::daemon> daemon;
  daemon.emplace([&](record_batch) { daemon->deliver({"b"}); });
  daemon->initialize();
  CHECK_THROWS_WITH(daemon->deliver({"a"}),
                    "deliver: a callback runs, and the daemon waits until it has returned");
  CHECK(daemon->exit_status() == exit_status::callback_failed);
}

TEST_CASE("a sleep that nothing can end is refused", "[testing][endless]") {
  testing::daemon daemon(each([](const record&, const shard_context& shard) {
    shard.sleep_for(shard_context::clock::duration::max());
  }));
  CHECK_THROWS_WITH(daemon.initialize().deliver({"a"}),
                    Contains("waits for a stop, and nothing can bring it"));
}

TEST_CASE("the seed varies the waits of all forms, and repeats them", "[testing]") {
  const auto waits = [](const processor_factory& factory, std::uint32_t seed) {
    testing::daemon daemon(factory, {}, {.seed = seed});
    const auto begin = daemon.initialize().now();
    daemon.deliver({"a"}).request_shutdown();
    return daemon.now() - begin;
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
  testing::daemon daemon([](const shard_context& shard) {
    CHECK_THROWS_AS(shard.fail(nullptr), std::invalid_argument);
    return std::make_unique<recording_processor>(shard);
  });
  daemon.initialize();
}


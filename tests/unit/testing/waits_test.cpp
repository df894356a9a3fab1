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
using checkpoint_attempt = testing::worker::checkpoint_attempt;
using namespace std::chrono_literals;

namespace {

testing::worker manual_worker(const recording_processor::step& script,
                              const session_options& options = manual()) {
  return scripted(script, options);
}

}  // namespace

TEST_CASE("a waiting checkpoint is retried, and the clock moves over the backoff", "[testing]") {
  auto worker = manual_worker(
      with_batch([](const checkpointer& checkpointer) { checkpointer.checkpoint(); }));
  const auto before = worker.initialize().now();
  worker.fail_next_checkpoint("ThrottlingException", 2)
      .fail_next_checkpoint("KinesisClientLibDependencyException")
      .deliver({"a"});
  const sequence_position first("1");
  CHECK(worker.attempts() ==
        std::vector<checkpoint_attempt>{{first, "ThrottlingException"},
                                        {first, "ThrottlingException"},
                                        {first, "KinesisClientLibDependencyException"},
                                        {first, std::nullopt}});
  CHECK(worker.log().size() == 3);
  // 50 to 100, 100 to 200, 200 to 400 ms: the backoff with its jitter.
  CHECK(worker.now() - before >= 350ms);
  CHECK(worker.now() - before <= 700ms);
}

TEST_CASE("a deadline passes in virtual time, to the tick", "[testing]") {
  session_options options = manual();
  options.retry.max_attempts = 1'000'000;
  std::error_code ec;
  std::chrono::steady_clock::duration waited{};
  const shard_context* context = nullptr;
  auto worker = manual_worker(with_batch([&](const checkpointer& checkpointer) {
                                const auto begin = context->now();
                                checkpointer.checkpoint_until({}, begin + 1h, ec);
                                waited = context->now() - begin;
                              }),
                              options);
  context = worker.initialize().processor<recording_processor>().context;
  worker.fail_next_checkpoint("ThrottlingException", 100'000).deliver({"a"});
  CHECK(ec == errc::timed_out);
  CHECK(waited == 1h);
}

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

TEST_CASE("a sleep takes virtual time, and ends early at the stop token", "[testing]") {
  bool whole = false;
  bool cut = true;
  const shard_context* context = nullptr;
  auto worker = manual_worker(with_batch([&](const checkpointer&) {
    whole = context->sleep_for(1h);
    cut = context->sleep_for(1h);
  }));
  context = worker.initialize().processor<recording_processor>().context;
  const auto before = worker.now();
  worker.deliver({"a"});
  CHECK(whole);
  CHECK(cut);
  CHECK(worker.now() - before == 2h);
  worker.end_input_in_next_callback().deliver({"b"});
  CHECK_FALSE(whole);
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

TEST_CASE("a pool's functions run while a callback waits to be notified, in virtual time",
          "[testing][seam]") {
  class waiting final : public record_processor {
   public:
    explicit waiting(const shard_context& shard) : service_(detail::service_access::of(shard)) {}
    void process_records(record_batch, const checkpointer&) override {
      const auto began = service_->now();
      pool_->post([this] {
        service_->sleep_until(service_->now() + 3s);
        service_->notify();
      });
      service_->wait_until_notified(began + 10s);
      waits.push_back(service_->now() - began);
      service_->wait_until_notified(service_->now() + 10s);
      waits.push_back(service_->now() - began);
    }
    std::vector<std::chrono::steady_clock::duration> waits;

   private:
    std::shared_ptr<detail::shard_service> service_;
    std::unique_ptr<detail::thread_pool> pool_ = service_->make_thread_pool(2);
  };
  testing::worker worker(factory_of<waiting>());
  worker.initialize().deliver({"a"});
  INFO(worker);
  CHECK(worker.processor<waiting>().waits ==
        std::vector<std::chrono::steady_clock::duration>{3s, 13s});
}

TEST_CASE("a failure reported elsewhere ends a callback that waits, and the first one counts",
          "[testing][seam][P53]") {
  const bool sleeps = GENERATE(true, false);
  std::optional<std::chrono::steady_clock::duration> waited;
  std::unique_ptr<detail::thread_pool> pool;
  testing::worker worker([&](const shard_context& shard) {
    return std::make_unique<recording_processor>(
        shard, with_batch([&](const checkpointer&) {
          const auto began = shard.now();
          pool = detail::service_access::of(shard)->make_thread_pool(1);
          pool->post([&] {
            shard.fail(std::make_exception_ptr(std::runtime_error("no space left")));
            shard.fail(std::make_exception_ptr(std::runtime_error("nor here")));
          });
          if (sleeps) {
            shard.sleep_for(1h);
          } else {
            detail::service_access::of(shard)->wait_until_notified(began + 1h);
          }
          waited = shard.now() - began;
          throw std::runtime_error("told to stop");
        }));
  });
  worker.initialize().deliver({"a"});
  INFO(worker);
  REQUIRE(waited);
  CHECK(*waited < 1s);
  CHECK(worker.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_WITH(std::rethrow_exception(worker.thrown()), "no space left");
  CHECK(worker.log().front().text == "the shard's processing failed: no space left");
  CHECK(worker.checkpoints().empty());
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

TEST_CASE("a processor's line in the log has the shard's id, and is one line", "[testing][seam]") {
  testing::worker worker([](const shard_context& shard) {
    shard.log(log_level::warning, "two\nlines");
    return std::make_unique<recording_processor>(shard);
  });
  worker.initialize("shard-7");
  CHECK(worker.log() == std::vector<log_entry>{{log_level::warning, "shard-7", "two\\nlines"}});
}

TEST_CASE("a processor says its checkpoint mode: the library checkpoints nothing in manual mode",
          "[testing][seam]") {
  auto worker = scripted({}, manual());
  worker.initialize().deliver({"a"}).request_shutdown();
  CHECK(worker.checkpoints().empty());
}

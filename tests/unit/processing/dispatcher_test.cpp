// SPDX-License-Identifier: Apache-2.0
// When parallel() acts between its looks at the records: failures, stops and ends that come then.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

/// Calls the test where parallel() calls the service.
struct hooked : detail::shard_service_wrapper {
  struct hooks {
    std::function<void(const observer::shard_event&)> observe{};
    bool runs_all_next = false;  // when the clock is read next
    bool has_timers = true;
    bool holds_runners = false;  // until run_all()
    clock::duration behind{};    // of the time that is read
    std::vector<std::function<void()>> runners{};
    std::vector<sequence_position> requested{};

    void run_all() {
      for (const auto& runner : std::exchange(runners, {})) runner();
    }
  };
  static inline hooks* current = nullptr;

  struct held_pool final : detail::thread_pool {
    explicit held_pool(std::unique_ptr<thread_pool> pool) : inner(std::move(pool)) {}
    ~held_pool() override { current->runners.clear(); }
    void post(std::function<void()> function) override {
      if (!current->holds_runners) return inner->post(std::move(function));
      current->runners.push_back(std::move(function));
    }
    std::unique_ptr<thread_pool> inner;
  };

  using shard_service_wrapper::shard_service_wrapper;
  void async_checkpoint(const std::optional<sequence_position>& position,
                        checkpoint_handler handler) override {
    if (position) current->requested.push_back(*position);
    shard_service_wrapper::async_checkpoint(position, std::move(handler));
  }
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override {
    if (!current->has_timers) return 1;
    return shard_service_wrapper::start_timer(delay, period, std::move(function));
  }
  std::unique_ptr<detail::thread_pool> make_thread_pool(std::size_t threads) override {
    return std::make_unique<held_pool>(shard_service_wrapper::make_thread_pool(threads));
  }
  void observe(observer::shard_event event) noexcept override {
    if (current->observe) current->observe(event);
  }
  [[nodiscard]] clock::time_point now() const override {
    if (std::exchange(current->runs_all_next, false)) current->run_all();
    return shard_service_wrapper::now() - current->behind;
  }
  [[nodiscard]] bool is_observed() const noexcept override { return true; }
};

/// A processor under hooks.
struct hooked_shard {
  explicit hooked_shard(const processor_factory& make) : processors(make) {
    hooked::current = &with;
    daemon.emplace(processors.factory(), prompt());
    daemon->initialize();
  }
  ~hooked_shard() { daemon.reset(); }
  hooked_shard(const hooked_shard&) = delete;
  hooked_shard& operator=(const hooked_shard&) = delete;

  hooked::hooks with;
  wrapped<hooked> processors;
  std::optional<testing::daemon> daemon;
};

void fail_second(const record& one) {
  if (one.data() == "2") throw permanent_error("no");
}

}  // namespace

TEST_CASE("a failure after a callback's last look does not wait for the next batch",
          "[processing][dispatcher]") {
  hooked_shard shard(parallel(record_handler(fail_second), {}, {.lanes = 1}));
  shard.with.holds_runners = true;
  shard.with.observe = [&](const observer::shard_event& event) {
    // The callback tells of its window last, and then looks when the next retry is due.
    if (std::holds_alternative<observer::window_changed>(event)) shard.with.runs_all_next = true;
  };
  shard.daemon->deliver({"1", "2"}).advance(0ms);
  CHECK(shard.daemon->exit_status() == exit_status::callback_failed);
}

TEST_CASE("a failure between callbacks leaves the next one, which checkpoints what is complete",
          "[processing][dispatcher]") {
  hooked_shard shard(parallel(record_handler(fail_second), {}, {.lanes = 1}));
  shard.with.has_timers = false;  // the next batch comes first
  shard.daemon->deliver({"1", "2"});
  REQUIRE_FALSE(shard.daemon->exit_status());
  shard.daemon->deliver({"3"});
  CHECK(shard.daemon->exit_status() == exit_status::callback_failed);
  CHECK(shard.daemon->persisted() == sequence_position("1"));
}

TEST_CASE("a failure that leaves a timer requests the checkpoint of what is complete",
          "[processing][dispatcher]") {
  hooked_shard shard(parallel(record_handler(fail_second), {}, {.lanes = 1}));
  shard.daemon->deliver({"1", "2"}).advance(0ms);
  CHECK(shard.daemon->exit_status() == exit_status::callback_failed);
  CHECK(shard.with.requested == std::vector<sequence_position>{sequence_position("1")});
}

TEST_CASE("a runner that read the clock before a probe was due does not end the probes",
          "[processing][dispatcher]") {
  const auto which = GENERATE(form::parallel, form::completions);
  CAPTURE(which);
  int attempts = 0;
  const auto fail_first = [&](const record&, const shard_context&) {
    if (++attempts == 1) throw std::runtime_error("no connection");
  };
  hooked_shard shard(make(which, fail_first, {.breaker = {{.failures = 1}}}, {.lanes = 1}));
  shard.daemon->deliver({"1"}).advance(0ms);
  REQUIRE(attempts == 1);
  shard.with.holds_runners = true;
  shard.daemon->advance(1h);
  REQUIRE(shard.with.runners.size() == 1);
  shard.with.holds_runners = false;
  shard.with.behind = 1h;
  shard.with.run_all();
  REQUIRE(attempts == 1);
  shard.with.behind = 0h;
  shard.daemon->advance(1h);
  CHECK(attempts == 2);
}

TEST_CASE("when drain_timeout has passed, no probe is waited for", "[processing][dispatcher]") {
  hooked_shard shard(parallel([](const record&) { throw std::runtime_error("no connection"); },
                              {.breaker = {{.failures = 1}}},
                              {.lanes = 1, .order = order::none, .drain_timeout = 20s}));
  shard.daemon->deliver({"1", "2"}).request_shutdown();
  CHECK_NOTHROW(shard.daemon->advance(1h));
}

TEST_CASE("user code is destroyed with the processor, even while a completion is reported",
          "[processing][dispatcher]") {
  std::vector<completion> held;
  std::weak_ptr<int> of_handler;
  bool is_destroyed = false;
  hooked_shard shard(parallel([&](const shard_context&) {
    auto state = std::make_shared<int>(0);
    of_handler = state;
    return [&held, state](completion one) { held.push_back(std::move(one)); };
  }));
  shard.daemon->deliver({"1"}).advance(0ms);
  REQUIRE(held.size() == 1);
  shard.with.observe = [&](const observer::shard_event& event) {
    if (!std::holds_alternative<observer::record_attempted>(event)) return;
    shard.daemon.reset();
    is_destroyed = of_handler.expired();
  };
  held.front().complete();
  CHECK(is_destroyed);
}

TEST_CASE("what ends after a stop moves no watermark, and is no attempt",
          "[processing][dispatcher]") {
  const auto which = GENERATE(form::parallel, form::completions);
  CAPTURE(which);
  std::optional<hooked_shard> shard;
  shard.emplace(make(which, [&](const record& one, const shard_context&) {
    if (one.data() == "2") shard->daemon->end_input();
  }));
  int attempts = 0;
  std::optional<sequence_position> watermark;
  shard->with.observe = [&](const observer::shard_event& event) {
    if (std::holds_alternative<observer::record_attempted>(event)) ++attempts;
    if (const auto* const changed = std::get_if<observer::window_changed>(&event)) {
      watermark = changed->watermark;
    }
  };
  shard->daemon->deliver({"1"}).advance(2s);
  const int before = attempts;
  shard->daemon->deliver({"2"});
  CHECK(shard->daemon->stop_requested());
  CHECK(attempts == before);
  CHECK(watermark == sequence_position("1"));
  for (const auto& position : shard->with.requested) CHECK(position == sequence_position("1"));
}

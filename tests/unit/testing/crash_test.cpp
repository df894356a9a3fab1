// SPDX-License-Identifier: Apache-2.0
// crash() inside user code: the process ends where it stands.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

struct crashing_observer final : observer {
  explicit crashing_observer(std::function<void()> crash) : crash_(std::move(crash)) {}
  void on_event(const observer::event_source&, const observer::shard_event& event) override {
    if (std::holds_alternative<observer::callback_ended>(event)) crash_();
  }
  std::function<void()> crash_;
};

}  // namespace

TEST_CASE("a callback ends where its process crashes, and nothing is destroyed or reported",
          "[testing][crash]") {
  bool has_continued = false;
  std::optional<testing::worker> worker;
  worker.emplace([&](record_batch) {
    worker->crash();
    has_continued = true;
  });
  worker->initialize().deliver({"a"});
  INFO(*worker);
  CHECK_FALSE(has_continued);
  CHECK_FALSE(worker->exit_status());
  CHECK_FALSE(worker->thrown());
  CHECK(worker->stop_requested());
  CHECK(worker->checkpoints().empty());
  CHECK(worker->log().empty());
  CHECK(worker->dialogue().ends_with("child     is killed\n"));
  CHECK_THROWS_WITH(worker->deliver({"b"}),
                    "deliver: the child crashed; resume() starts a successor");
  CHECK_THROWS_AS(worker->crash(), std::logic_error);
}

TEST_CASE("what catches the end of the process is ended by its next call", "[testing][crash]") {
  int steps = 0;
  std::optional<testing::worker> worker;
  worker.emplace([&](record_batch, const checkpointer& checkpointer) {
    try {
      worker->crash();
    } catch (...) {
      ++steps;
    }
    std::error_code ignored;
    checkpointer.checkpoint({}, ignored);
    ++steps;
  });
  worker->initialize().deliver({"a"});
  CHECK(steps == 1);
  CHECK(worker->attempts().empty());
}

TEST_CASE("each does not take a crash for a failure of its record", "[testing][crash]") {
  const auto lot = std::make_shared<memory_lot>();
  strings handled;
  std::optional<testing::worker> worker;
  worker.emplace(each(
      [&](const record& one) {
        handled.emplace_back(one.data());
        if (handled.size() == 2) worker->crash();
      },
      parking(lot, 1)));
  worker->initialize().deliver({"a", "b", "c"}).resume();
  INFO(*worker);
  CHECK(lot->all.empty());
  CHECK(handled == strings{"a", "b", "a", "b", "c"});
  CHECK(worker->persisted() == sequence_position("3"));
}

TEST_CASE("a process may crash in its factory, in a timer, a handler and an observer",
          "[testing][crash]") {
  const std::string where = GENERATE("factory", "timer", "handler", "observer");
  CAPTURE(where);
  std::optional<testing::worker> worker;
  int lives = 0;
  const auto crash_once = [&] {
    if (lives == 1) worker->crash();
  };
  run_options options;
  if (where == "observer") options.observers = {std::make_shared<crashing_observer>(crash_once)};
  worker.emplace(
      [&](const shard_context& shard) {
        ++lives;
        if (where == "factory") crash_once();
        if (where == "timer") shard.after(1s, crash_once);
        return std::make_unique<recording_processor>(
            shard, with_batch([&](const checkpointer& to) {
              if (where == "handler")
                to.async_checkpoint({}, [&](std::error_code) { crash_once(); });
            }));
      },
      options);
  worker->initialize();
  if (where == "timer") worker->advance(1s);
  if (where == "handler") worker->deliver({"a"});
  INFO(*worker);
  CHECK(worker->stop_requested());
  CHECK_FALSE(worker->exit_status());
  CHECK_FALSE(worker->thrown());
  worker->resume().deliver({"b"}).request_shutdown().end_input();
  CHECK(lives == 2);
  CHECK(worker->exit_status() == exit_status::ok);
}

}  // namespace kclxx::test

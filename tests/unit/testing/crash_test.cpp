// SPDX-License-Identifier: Apache-2.0
// crash() inside user code: the process ends where it stands.
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

/// What survives a process: rows, and with store_position the last position they have.
struct store {
  strings rows;
  std::optional<sequence_position> last;
};

/// Writes each batch in one transaction, and asks for a checkpoint after it.
class writer final : public record_processor {
 public:
  writer(store& store, bool skips_what_is_stored, std::function<void()> between)
      : to_(store), skips_(skips_what_is_stored), between_(std::move(between)) {}

  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    for (const record& one : batch) {
      if (skips_ && to_.last && one.position() <= *to_.last) continue;
      to_.rows.emplace_back(one.data());
      to_.last = one.position();
    }
    between_();
    checkpointer.checkpoint();
  }

 private:
  store& to_;
  bool skips_;
  std::function<void()> between_;
};

/// The rows after a crash between the first commit and its checkpoint, and a successor.
strings rows_after_crash(bool skips_what_is_stored) {
  store table;
  std::optional<testing::daemon> daemon;
  bool has_crashed = false;
  daemon.emplace([&] {
    return std::make_unique<writer>(table, skips_what_is_stored, [&] {
      if (!std::exchange(has_crashed, true)) daemon->crash();
    });
  });
  daemon->initialize().deliver({"a", "b"}).resume();
  CHECK(daemon->checkpoints() == std::vector{sequence_position("2")});
  return table.rows;
}

struct crashing_observer final : observer {
  explicit crashing_observer(std::function<void()> crash) : crash_(std::move(crash)) {}
  void on_event(const observer::event_source&, const observer::shard_event& event) override {
    if (std::holds_alternative<observer::callback_ended>(event)) crash_();
  }
  std::function<void()> crash_;
};

}  // namespace

TEST_CASE("a crash between a commit and its checkpoint shows what comes twice",
          "[testing][crash]") {
  CHECK(rows_after_crash(false) == strings{"a", "b", "a", "b"});
  CHECK(rows_after_crash(true) == strings{"a", "b"});
}

TEST_CASE("a callback ends where its process crashes, and nothing is destroyed or reported",
          "[testing][crash]") {
  bool has_continued = false;
  std::optional<testing::daemon> daemon;
  daemon.emplace([&](record_batch) {
    daemon->crash();
    has_continued = true;
  });
  daemon->initialize().deliver({"a"});
  INFO(*daemon);
  CHECK_FALSE(has_continued);
  CHECK_FALSE(daemon->exit_status());
  CHECK_FALSE(daemon->thrown());
  CHECK(daemon->stop_requested());
  CHECK(daemon->checkpoints().empty());
  CHECK(daemon->log().empty());
  CHECK(daemon->dialogue().ends_with("child     is killed\n"));
  CHECK_THROWS_WITH(daemon->deliver({"b"}),
                    "deliver: the child crashed; resume() starts a successor");
  CHECK_THROWS_AS(daemon->crash(), std::logic_error);
}

TEST_CASE("what catches the end of the process is ended by its next call", "[testing][crash]") {
  int steps = 0;
  std::optional<testing::daemon> daemon;
  daemon.emplace([&](record_batch, const checkpointer& checkpointer) {
    try {
      daemon->crash();
    } catch (...) {
      ++steps;
    }
    std::error_code ignored;
    checkpointer.checkpoint({}, ignored);
    ++steps;
  });
  daemon->initialize().deliver({"a"});
  CHECK(steps == 1);
  CHECK(daemon->attempts().empty());
}

TEST_CASE("each does not take a crash for a failure of its record", "[testing][crash]") {
  const auto lot = std::make_shared<memory_lot>();
  strings handled;
  std::optional<testing::daemon> daemon;
  daemon.emplace(each(
      [&](const record& one) {
        handled.emplace_back(one.data());
        if (handled.size() == 2) daemon->crash();
      },
      parking(lot, 1)));
  daemon->initialize().deliver({"a", "b", "c"}).resume();
  INFO(*daemon);
  CHECK(lot->all.empty());
  CHECK(handled == strings{"a", "b", "a", "b", "c"});
  CHECK(daemon->persisted() == sequence_position("3"));
}

TEST_CASE("a process may crash in its factory, in a timer, a handler and an observer",
          "[testing][crash]") {
  const std::string where = GENERATE("factory", "timer", "handler", "observer");
  CAPTURE(where);
  std::optional<testing::daemon> daemon;
  int lives = 0;
  const auto crash_once = [&] {
    if (lives == 1) daemon->crash();
  };
  run_options options;
  if (where == "observer") options.observers = {std::make_shared<crashing_observer>(crash_once)};
  daemon.emplace(
      [&](const shard_context& shard) {
        ++lives;
        if (where == "factory") crash_once();
        if (where == "timer") shard.after(1s, crash_once);
        return std::make_unique<recording_processor>(with_batch([&](const checkpointer& to) {
          if (where == "handler") to.async_checkpoint({}, [&](std::error_code) { crash_once(); });
        }));
      },
      options);
  daemon->initialize();
  if (where == "timer") daemon->advance(1s);
  if (where == "handler") daemon->deliver({"a"});
  INFO(*daemon);
  CHECK(daemon->stop_requested());
  CHECK_FALSE(daemon->exit_status());
  CHECK_FALSE(daemon->thrown());
  daemon->resume().deliver({"b"}).request_shutdown().end_input();
  CHECK(lives == 2);
  CHECK(daemon->exit_status() == exit_status::ok);
}

TEST_CASE("what is thrown in place of the end of the process is not the child's",
          "[testing][crash]") {
  std::optional<testing::daemon> daemon;
  const auto crash_and_throw = [&] {
    try {
      daemon->crash();
    } catch (...) {
      throw std::runtime_error("late");
    }
  };
  daemon.emplace(scripted(with_batch([&](const checkpointer& to) {
    to.async_checkpoint({}, [&](std::error_code) { crash_and_throw(); });
  })));
  daemon->initialize();
  SECTION("in a timer") {
    daemon->processor<recording_processor>().context->after(1s, crash_and_throw);
    daemon->advance(1s);
  }
  SECTION("in a handler") { daemon->deliver({"a"}); }
  INFO(*daemon);
  CHECK(daemon->stop_requested());
  CHECK_FALSE(daemon->exit_status());
  CHECK_FALSE(daemon->thrown());
}

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
// How a child ends in the test kit: statuses, faults, and what outlives it.
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "support/run_options.hpp"
#include "unit/processing/processing_support.hpp"

using namespace kclxx;
using namespace kclxx::test;
using positions = std::vector<sequence_position>;
using names = std::vector<std::string>;
using namespace std::chrono_literals;

namespace {

/// Returns how it ended.
class mortal final : public recording_processor {
 public:
  mortal(const shard_context& shard, bool& is_destroyed, bool& was_told)
      : recording_processor(shard), is_destroyed_(is_destroyed), was_told_(was_told) {}
  ~mortal() override {
    is_destroyed_ = true;
    std::error_code ec;
    handle->checkpoint({}, ec);
    was_told_ = context->stop_token().stop_requested() && ec == errc::daemon_gone;
  }

 private:
  bool& is_destroyed_;
  bool& was_told_;
};

}  // namespace

TEST_CASE("a worker that is asked to stop requests the shutdown once the action has ended",
          "[testing][worker_stop]") {
  auto worker = testing::worker(each([](const record&, const shard_context& shard) {
    shard.request_worker_stop();
    shard.request_worker_stop();
  }));
  worker.initialize();
  CHECK_FALSE(worker.worker_stop_requested());
  worker.deliver({"a", "b"});
  CHECK(worker.worker_stop_requested());
  CHECK(worker.callbacks() == names{"initialize", "process_records", "shutdown_requested"});
  CHECK(worker.persisted() == sequence_position("2"));
  CHECK_FALSE(worker.exit_status());
  CHECK_THROWS_AS(worker.deliver({"c"}), std::logic_error);
  CHECK(worker.end_input().exit_status() == exit_status::ok);

  SECTION("a successor's worker was not asked") {
    worker.resume();
    CHECK_FALSE(worker.worker_stop_requested());
    worker.deliver({});
    CHECK(worker.callbacks().back() == "process_records");
  }
}

TEST_CASE("an exception of a callback does not reach the test, but is seen; the next call refuses",
          "[testing]") {
  auto worker = testing::worker([](const record_batch& batch) {
    if (batch.front().data() == "bad") throw std::out_of_range("no such word");
  });
  worker.initialize().deliver({"good"}).advance(1s).deliver({"good"}).deliver({"bad"});
  CHECK(worker.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_AS(std::rethrow_exception(worker.thrown()), std::out_of_range);
  CHECK(worker.log().back().text == "process_records (record 3/0) failed: no such word");
  // What was complete before is persisted first.
  CHECK(worker.checkpoints() == positions{sequence_position("1"), sequence_position("2")});
  CHECK(worker.stop_requested());
  CHECK_THROWS_WITH(worker.deliver({"c"}),
                    "deliver: the child has left with exit status 10 (process_records (record 3/0) "
                    "failed: no such word)");
  CHECK(worker.dialogue().find("the worker ends: processRecords: the child's output ended") !=
        std::string::npos);
}

TEST_CASE("a lease that is lost silently shows with the next checkpoint", "[testing]") {
  std::error_code ec;
  bool is_stopped = false;
  testing::worker* asked = nullptr;  // a processor is replaced by resume
  auto worker = scripted(with_batch([&](const checkpointer& checkpointer) {
                           checkpointer.async_checkpoint();
                           asked->advance(5ms);  // so that it goes out before the callback returns
                           is_stopped = asked->stop_requested();
                           checkpointer.checkpoint({}, ec);
                         }),
                         manual());
  asked = &worker;
  worker.initialize().deliver({"a"});
  CHECK_FALSE(ec);
  worker.lose_lease_silently().deliver({"b"});
  CHECK(is_stopped);
  CHECK(ec == checkpoint_condition::lease_gone);
  CHECK(worker.persisted() == sequence_position("1"));
  CHECK(worker.attempts().back().error == "ShutdownException");
  worker.lose_lease();
  CHECK(worker.exit_status() == exit_status::ok);
  worker.resume();  // as another worker
  CHECK(worker.processor<recording_processor>().records == names{"2/0 key: b"});
}

TEST_CASE("a stop callback has run when a callback goes on, whatever real time it takes",
          "[testing]") {
  bool has_run = false;
  bool is_seen = false;
  recording_processor* processor = nullptr;
  auto worker = scripted(with_batch([&](const checkpointer& checkpointer) {
    const std::stop_callback at_stop(processor->context->stop_token(), [&] {
      std::this_thread::sleep_for(150ms);
      has_run = true;
    });
    std::error_code ec;
    checkpointer.checkpoint({}, ec);
    is_seen = has_run;
  }));
  processor = &worker.initialize().processor<recording_processor>();
  worker.lose_lease_silently().deliver({"a"});
  CHECK(is_seen);
}

TEST_CASE("the daemon dies in a callback: its stop token fires and its checkpoints fail",
          "[testing]") {
  std::error_code ec;
  bool is_stopped = false;
  recording_processor* processor = nullptr;
  auto worker = scripted(with_batch([&](const checkpointer& checkpointer) {
    is_stopped = processor->context->stop_token().stop_requested();
    checkpointer.checkpoint({}, ec);
  }));
  processor = &worker.initialize().processor<recording_processor>();
  worker.end_input_in_next_callback().deliver({"a"});
  CHECK(is_stopped);
  CHECK(ec == errc::daemon_gone);
  CHECK(worker.exit_status() == exit_status::daemon_gone);
  CHECK(worker.checkpoints().empty());
}

TEST_CASE("a callback that continues after the grace time ends with its process", "[testing]") {
  bool has_continued = false;
  std::optional<testing::worker> worker;
  worker.emplace([&](record_batch) {
    worker->end_input().advance(10s);
    has_continued = true;
  });
  worker->initialize().deliver({"a"});
  CHECK(worker->exit_status() == exit_status::callback_stuck);
  CHECK_FALSE(has_continued);
}

TEST_CASE("a successor gets the records in batches as large as the daemon's", "[testing]") {
  std::vector<std::size_t> sizes;
  const session_options options = manual();
  const auto note = [&](record_batch batch) { sizes.push_back(batch.size()); };
  testing::worker worker(in_mode(note, options.mode), options);
  worker.initialize().deliver(std::vector<std::string>(25'000, "x")).crash().resume();
  CHECK(sizes == std::vector<std::size_t>{25'000, 10'000, 10'000, 5'000});
}

TEST_CASE("a processor lives until its daemon's end, a checkpointer beyond it", "[testing]") {
  bool is_destroyed = false;
  bool was_told = false;
  std::optional<checkpointer> handle;
  {
    auto worker = testing::worker([&](const shard_context& shard) {
      return std::make_unique<mortal>(shard, is_destroyed, was_told);
    });
    worker.initialize().deliver({"a"});
    handle = worker.processor<mortal>().handle;
    testing::worker moved = std::move(worker);
    moved.end_shard();
    CHECK_FALSE(is_destroyed);
  }
  CHECK(is_destroyed);
  CHECK(was_told);
  std::error_code ec;
  handle->checkpoint({}, ec);
  CHECK(ec == errc::daemon_gone);
}

// crash() inside user code: the process ends where it stands.
namespace {

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
      [&](const record& event) {
        handled.emplace_back(event.data());
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

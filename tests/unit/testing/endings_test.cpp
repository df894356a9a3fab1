// SPDX-License-Identifier: Apache-2.0
// How a child ends in the test kit: statuses, faults, and what outlives it.
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"

using kclxx::checkpointer;
using kclxx::exit_status;
using kclxx::sequence_position;
using kclxx::test::recording_processor;
using positions = std::vector<sequence_position>;
using names = std::vector<std::string>;
using namespace std::chrono_literals;

namespace {

const sequence_position shard_end("SHARD_END");

kclxx::testing::daemon scripted(recording_processor::step script,
                                const kclxx::run_options& options = {}) {
  return kclxx::testing::daemon([script] { return std::make_unique<recording_processor>(script); },
                                options);
}

/// Says how it ended.
class mortal final : public recording_processor {
 public:
  mortal(bool& is_destroyed, bool& was_told) : is_destroyed_(is_destroyed), was_told_(was_told) {}
  ~mortal() override {
    is_destroyed_ = true;
    was_told_ = context->stop_token().stop_requested() && !handle->request();
  }

 private:
  bool& is_destroyed_;
  bool& was_told_;
};

}  // namespace

TEST_CASE("what a callback throws is not thrown on, but seen; the next verb refuses", "[testing]") {
  auto daemon = kclxx::testing::daemon([](const kclxx::record_batch& batch) {
    if (batch.front().data() == "bad") throw std::out_of_range("no such word");
  });
  daemon.initialize().deliver({"good"}).advance(1s).deliver({"good"}).deliver({"bad"});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_AS(std::rethrow_exception(daemon.thrown()), std::out_of_range);
  CHECK(daemon.log().back().text == "process_records failed: no such word");
  // What was complete before is persisted first.
  CHECK(daemon.checkpoints() == positions{sequence_position("1"), sequence_position("2")});
  CHECK(daemon.stop_requested());
  CHECK_THROWS_WITH(daemon.deliver({"c"}),
                    "deliver: the child has left with exit status 10 (process_records failed: no "
                    "such word)");
  CHECK(daemon.dialogue().find("the worker ends: processRecords: the child's output ended") !=
        std::string::npos);
}

TEST_CASE("a factory that throws, or makes nothing, fails as in production", "[testing]") {
  kclxx::testing::daemon throws([]() -> std::unique_ptr<kclxx::record_processor> { throw 42; });
  throws.initialize();
  CHECK(throws.exit_status() == exit_status::callback_failed);
  CHECK_THROWS_AS(std::rethrow_exception(throws.thrown()), int);
  kclxx::testing::daemon nothing(
      []() -> std::unique_ptr<kclxx::record_processor> { return nullptr; });
  nothing.initialize();
  CHECK(nothing.log().back().text ==
        "initialize failed: the processor factory returned no processor");
}

TEST_CASE("the end of a shard is retried in virtual time", "[testing]") {
  auto daemon = scripted({});
  const auto before = daemon.initialize().deliver({"a"}).now();
  daemon.fail_next_checkpoint("ThrottlingException", 5).end_shard();
  CHECK(daemon.checkpoints() == positions{sequence_position("1"), shard_end});
  CHECK(daemon.exit_status() == exit_status::ok);
  CHECK(daemon.now() > before);
}

TEST_CASE("the end of a shard that cannot be checkpointed is no success", "[testing]") {
  auto throttled = scripted({});
  throttled.initialize().fail_next_checkpoint("ThrottlingException", 10).end_shard();
  CHECK(throttled.exit_status() == exit_status::shard_end_failed);
  CHECK(throttled.attempts().size() == 10);
  CHECK(throttled.persisted() == sequence_position("TRIM_HORIZON"));
  auto refused = scripted({});
  refused.initialize().fail_next_checkpoint("InvalidStateException").end_shard();
  CHECK(refused.exit_status() == exit_status::shard_end_failed);
  refused.resume().end_shard();
  CHECK(refused.persisted() == shard_end);
}

TEST_CASE("a shutdown's retries end before the daemon's patience", "[testing]") {
  auto daemon = scripted({});
  const auto before = daemon.initialize().fail_next_checkpoint("ThrottlingException").now();
  daemon.deliver({"a"}).fail_next_checkpoint("ThrottlingException", 1000).request_shutdown();
  CHECK(daemon.now() - before <= 10s);
  CHECK(daemon.checkpoints().empty());
  CHECK(daemon.log().back().text.find("shutdown: records up to 1/0 are complete but not "
                                      "checkpointed") == 0);
  daemon.end_input();
  CHECK(daemon.exit_status() == exit_status::ok);
}

TEST_CASE("a lease that is lost silently shows with the next checkpoint", "[testing]") {
  std::optional<bool> was_requested;
  bool is_stopped = false;
  kclxx::testing::daemon* asked = nullptr;  // a processor is replaced by resume
  kclxx::run_options options;
  options.complete = kclxx::complete_when::by_request;
  auto daemon = scripted(
      [&](const std::string& callback, checkpointer* with) {
        if (callback != "process_records") return;
        with->request();
        asked->advance(5ms);  // so that it goes out before the callback returns
        is_stopped = asked->stop_requested();
        was_requested = with->request();
      },
      options);
  asked = &daemon;
  daemon.initialize().deliver({"a"});
  CHECK(was_requested == true);
  daemon.lose_lease_silently().deliver({"b"});
  CHECK(is_stopped);
  CHECK(was_requested == false);
  CHECK(daemon.persisted() == sequence_position("1"));
  CHECK(daemon.attempts().back().error == "ShutdownException");
  daemon.lose_lease();
  CHECK(daemon.exit_status() == exit_status::ok);
  daemon.resume();  // as another worker
  CHECK(daemon.processor<recording_processor>().records == names{"2/0 key: b"});
}

TEST_CASE("the daemon dies in a callback: its stop token fires and its checkpoints fail",
          "[testing]") {
  std::error_code ec;
  bool is_stopped = false;
  recording_processor* processor = nullptr;
  auto daemon = scripted([&](const std::string& callback, checkpointer* with) {
    if (callback != "process_records") return;
    is_stopped = processor->context->stop_token().stop_requested();
    with->checkpoint(ec);
  });
  processor = &daemon.initialize().processor<recording_processor>();
  daemon.end_input_in_next_callback().deliver({"a"});
  CHECK(is_stopped);
  CHECK(ec == kclxx::errc::daemon_gone);
  CHECK(daemon.exit_status() == exit_status::daemon_gone);
  CHECK(daemon.checkpoints().empty());
}

TEST_CASE("a callback that goes on behind the grace time is stuck", "[testing]") {
  std::optional<kclxx::testing::daemon> daemon;
  daemon.emplace([&](kclxx::record_batch) { daemon->end_input().advance(10s); });
  daemon->initialize().deliver({"a"});
  CHECK(daemon->exit_status() == exit_status::callback_stuck);
}

TEST_CASE("the input may end before anything begins, and while nothing is to be done",
          "[testing]") {
  auto at_once = scripted({});
  at_once.end_input();
  CHECK(at_once.exit_status() == exit_status::ok);
  CHECK(at_once.callbacks().empty());
  auto idle = scripted({});
  idle.initialize().deliver({"a"}).advance(1s).deliver({"b"}).end_input();
  CHECK(idle.exit_status() == exit_status::ok);
  CHECK(idle.log().back().text.find("records up to 2/0 are complete but not checkpointed") == 0);
}

TEST_CASE("a batch over the line limit is refused as in production", "[testing]") {
  kclxx::run_options options;
  options.max_line_length = 1000;
  auto daemon = scripted({}, options);
  daemon.initialize().deliver({"a"}).deliver({std::string(2000, 'x')});
  CHECK(daemon.exit_status() == exit_status::protocol_error);
}

TEST_CASE("run_options::log gets each line besides the list", "[testing]") {
  names texts;
  kclxx::run_options options;
  options.log = [&](kclxx::log_level, std::string_view text) { texts.emplace_back(text); };
  auto daemon = scripted({}, options);
  daemon.initialize().send_unknown_action("x");
  REQUIRE(daemon.log().size() == 1);
  CHECK(texts == names{daemon.log()[0].text});
}

TEST_CASE("a processor lives until its daemon's end, a checkpointer beyond it", "[testing]") {
  bool is_destroyed = false;
  bool was_told = false;
  std::optional<checkpointer> handle;
  {
    auto daemon =
        kclxx::testing::daemon([&] { return std::make_unique<mortal>(is_destroyed, was_told); });
    daemon.initialize().deliver({"a"});
    handle = daemon.processor<mortal>().handle;
    kclxx::testing::daemon moved = std::move(daemon);
    moved.end_shard();
    CHECK_FALSE(is_destroyed);
  }
  CHECK(is_destroyed);
  CHECK(was_told);
  CHECK_FALSE(handle->request());
  std::error_code ec;
  handle->checkpoint(ec);
  CHECK(ec == kclxx::errc::daemon_gone);
}

// SPDX-License-Identifier: Apache-2.0
// Waiting, retries and faults in the test kit's virtual time.
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
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"

using kclxx::checkpointer;
using kclxx::sequence_position;
using kclxx::test::recording_processor;
using kclxx::testing::checkpoint_attempt;
using positions = std::vector<sequence_position>;
using namespace std::chrono_literals;

namespace {

kclxx::run_options by_request() {
  kclxx::run_options options;
  options.complete = kclxx::complete_when::by_request;
  return options;
}

kclxx::testing::daemon scripted(recording_processor::step script,
                                const kclxx::run_options& options = by_request()) {
  return kclxx::testing::daemon([script] { return std::make_unique<recording_processor>(script); },
                                options);
}

/// In process_records only.
recording_processor::step with_batch(std::function<void(checkpointer&)> what) {
  return [what = std::move(what)](const std::string& callback, checkpointer* with) {
    if (callback == "process_records") what(*with);
  };
}

/// What a call is refused with.
std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("a checkpoint in a callback is answered before it returns", "[testing]") {
  auto daemon = scripted(with_batch([](checkpointer& with) { with.checkpoint(); }));
  daemon.initialize().deliver({"a", "b"}).deliver({"c"});
  CHECK(daemon.checkpoints() == positions{sequence_position("2"), sequence_position("3")});
}

TEST_CASE("a waiting checkpoint is retried, and the clock moves over the backoff", "[testing]") {
  auto daemon = scripted(with_batch([](checkpointer& with) { with.checkpoint(); }));
  const auto before = daemon.initialize().now();
  daemon.fail_next_checkpoint("ThrottlingException", 2)
      .fail_next_checkpoint("KinesisClientLibDependencyException")
      .deliver({"a"});
  const sequence_position first("1");
  CHECK(daemon.attempts() ==
        std::vector<checkpoint_attempt>{{first, "ThrottlingException"},
                                        {first, "ThrottlingException"},
                                        {first, "KinesisClientLibDependencyException"},
                                        {first, std::nullopt}});
  CHECK(daemon.log().size() == 3);
  // 50 to 100, 100 to 200, 200 to 400 ms: the backoff with its jitter.
  CHECK(daemon.now() - before >= 350ms);
  CHECK(daemon.now() - before <= 700ms);
}

TEST_CASE("attempts run out, and the callback gets the daemon's name", "[testing]") {
  kclxx::run_options options = by_request();
  options.retry.max_attempts = 3;
  std::string name;
  auto daemon = scripted(with_batch([&](checkpointer& with) {
                           try {
                             with.checkpoint();
                           } catch (const kclxx::checkpoint_error& error) {
                             name = error.name();
                           }
                         }),
                         options);
  daemon.initialize().fail_next_checkpoint("ThrottlingException", 3).deliver({"a"});
  CHECK(name == "ThrottlingException");
  CHECK(daemon.attempts().size() == 3);
  CHECK(daemon.checkpoints().empty());
}

TEST_CASE("an error that is not retried fails the wait at once", "[testing]") {
  std::error_code ec;
  auto daemon = scripted(with_batch([&](checkpointer& with) { with.checkpoint(ec); }));
  daemon.initialize().fail_next_checkpoint("InvalidStateException").deliver({"a"});
  CHECK(ec == kclxx::checkpoint_errc::invalid_state);
  daemon.deliver({"b"});
  CHECK_FALSE(ec);
}

TEST_CASE("a deadline passes in virtual time, to the tick", "[testing]") {
  kclxx::run_options options = by_request();
  options.retry.max_attempts = 1'000'000;
  std::error_code ec;
  std::chrono::steady_clock::duration waited{};
  const kclxx::shard_context* context = nullptr;
  auto daemon = scripted(with_batch([&](checkpointer& with) {
                           const auto begin = context->now();
                           with.checkpoint_until(begin + 1h, ec);
                           waited = context->now() - begin;
                         }),
                         options);
  context = daemon.initialize().processor<recording_processor>().context;
  daemon.fail_next_checkpoint("ThrottlingException", 100'000).deliver({"a"});
  CHECK(ec == kclxx::errc::timed_out);
  CHECK(waited == 1h);
}

TEST_CASE("a checkpoint in lease_lost fails at once, as in production", "[testing]") {
  std::optional<checkpointer> handle;
  std::error_code ec;
  auto daemon = scripted([&](const std::string& callback, checkpointer* with) {
    if (callback == "lease_lost") handle->checkpoint(ec);
    if (with != nullptr) handle = *with;
  });
  daemon.initialize().deliver({"a"}).lose_lease();
  CHECK(ec == kclxx::errc::lease_lost);
  CHECK(daemon.attempts().empty());
}

TEST_CASE("what a callback requests goes out when it returns, in one line", "[testing]") {
  auto daemon = scripted(with_batch([](checkpointer& with) {
    with.request(sequence_position("1"));
    with.request();
  }));
  daemon.initialize().deliver({"a", "b"});
  CHECK(daemon.checkpoints() == positions{sequence_position("2")});
}

TEST_CASE("what a callback requests goes out at once when it has lasted 5 ms", "[testing]") {
  kclxx::testing::daemon* clock = nullptr;
  auto daemon = scripted(with_batch([&](checkpointer& with) {
    with.request(sequence_position("1"));
    clock->advance(5ms);
    with.request(sequence_position("2"));
    with.request();
  }));
  clock = &daemon;
  daemon.initialize().deliver({"a", "b", "c"});
  CHECK(daemon.checkpoints() ==
        positions{sequence_position("1"), sequence_position("2"), sequence_position("3")});
}

TEST_CASE("what is requested between two callbacks goes out with the next", "[testing]") {
  auto later = scripted({});
  later.initialize().deliver({"a", "b"});
  auto& handle = *later.processor<recording_processor>().handle;
  CHECK(handle.request(sequence_position("1")));
  CHECK(handle.request());
  CHECK(later.attempts().empty());
  later.deliver({});
  CHECK(later.checkpoints() == positions{sequence_position("2")});
  CHECK_THROWS_AS(handle.request(sequence_position("3")), kclxx::checkpoint_error);
}

TEST_CASE("a throttled request is tried again with the first call behind its backoff",
          "[testing]") {
  auto daemon = scripted(with_batch([](checkpointer& with) { with.request(); }));
  daemon.initialize().fail_next_checkpoint("ThrottlingException").deliver({"a"}).deliver({});
  CHECK(daemon.checkpoints().empty());
  daemon.advance(100ms).deliver({});
  CHECK(daemon.checkpoints() == positions{sequence_position("1")});
}

TEST_CASE("what returned is checkpointed by the library's own interval", "[testing]") {
  auto daemon = scripted({}, {});
  daemon.initialize().deliver({"a"}).advance(4999ms).deliver({"b"});
  CHECK(daemon.checkpoints() == positions{sequence_position("1")});
  daemon.advance(1ms).deliver({"c"});
  CHECK(daemon.checkpoints() == positions{sequence_position("1"), sequence_position("3")});
}

TEST_CASE("time that passes in a callback is the callback's", "[testing]") {
  std::optional<kclxx::testing::daemon> daemon;
  daemon.emplace([&](kclxx::record_batch) { daemon->advance(5s); });
  daemon->initialize().deliver({"a"}).deliver({"b"});
  CHECK(daemon->checkpoints() == positions{sequence_position("1"), sequence_position("2")});
}

TEST_CASE("between two callbacks a wait ends by its deadline, or is refused", "[testing]") {
  auto daemon = scripted({});
  daemon.initialize().deliver({"a"});
  auto& handle = *daemon.processor<recording_processor>().handle;
  const auto before = daemon.now();
  std::error_code ec;
  handle.checkpoint_until(before + 3s, ec);
  CHECK(ec == kclxx::errc::timed_out);
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

TEST_CASE("a call from another thread throws there, and the next verb throws it again",
          "[testing]") {
  auto daemon = scripted({});
  daemon.initialize().deliver({"a"});
  checkpointer handle = *daemon.processor<recording_processor>().handle;
  std::string request;
  std::string wait;
  std::thread([&] {
    request = refusal([&] { handle.request(); });
    std::error_code ec;
    wait = refusal([&] { handle.checkpoint(ec); });
  }).join();
  CHECK(request.find("request() was called on another thread") == 0);
  CHECK(wait.find("checkpoint() was called on another thread") == 0);
  CHECK(refusal([&] { daemon.deliver({}); }).find("checkpoint() was called on another thread") ==
        0);
  daemon.deliver({});  // said once
  std::string verb;
  std::thread([&] { verb = refusal([&] { daemon.advance(1s); }); }).join();
  CHECK(verb.find("advance was called on another thread") == 0);
  CHECK(daemon.attempts().empty());
}

TEST_CASE("a callback's worker thread is told, and the verb that ran it as well", "[testing]") {
  bool is_told = false;
  auto daemon = scripted(with_batch([&](checkpointer& with) {
    std::thread([&] {
      try {
        with.request();
      } catch (const std::logic_error&) {
        is_told = true;
      }
    }).join();
  }));
  daemon.initialize();
  CHECK_THROWS_AS(daemon.deliver({"a"}), std::logic_error);
  CHECK(is_told);
}

TEST_CASE("a verb in a callback is refused there and at its end", "[testing]") {
  std::optional<kclxx::testing::daemon> daemon;
  daemon.emplace([&](kclxx::record_batch) { daemon->deliver({"b"}); });
  daemon->initialize();
  CHECK_THROWS_WITH(daemon->deliver({"a"}),
                    "deliver: a callback runs, and the daemon waits until it has returned");
  CHECK(daemon->exit_status() == kclxx::exit_status::callback_failed);
}

// SPDX-License-Identifier: Apache-2.0
// What has threads of its own in production waits side by side in the test kit, too.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"
#include "support/recording_processor.hpp"
#include "support/run_options.hpp"
#include "support/text.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using testing::worker;
using namespace std::chrono_literals;

const parallel_options three_lanes{.lanes = 3, .order = order::none};

/// A handler whose record says how many minutes it takes, and that notes when it has ended.
std::function<void(const record&, const shard_context&)> sleeping(std::vector<std::string>& ended) {
  return [&, begun = std::optional<shard_context::clock::time_point>()](
             const record& one, const shard_context& shard) mutable {
    if (!begun) begun = shard.now();
    const bool is_whole = shard.sleep_for(std::stoi(std::string(one.data())) * 1min);
    const auto minutes = std::chrono::floor<std::chrono::minutes>(shard.now() - *begun).count();
    ended.push_back(std::string(one.data()) + (is_whole ? " ends at " : " is interrupted at ") +
                    std::to_string(minutes));
  };
}

TEST_CASE("handlers side by side end in the order of their waits, and their times do not add up",
          "[testing][threads]") {
  std::vector<std::string> ended;
  worker played(parallel(sleeping(ended), {}, three_lanes));
  const auto begin = played.initialize().now();
  played.deliver({"1", "3", "2"});
  CHECK(played.now() == begin);
  played.end_shard();
  INFO(played);
  CHECK(ended == std::vector<std::string>{"1 ends at 1", "2 ends at 2", "3 ends at 3"});
  CHECK(played.now() - begin == 3min);
  CHECK(played.persisted() == sequence_position("SHARD_END"));
}

TEST_CASE("advance lets the waits of handlers end, as far as it goes", "[testing][threads]") {
  std::vector<std::string> ended;
  worker played(parallel(sleeping(ended), {}, three_lanes));
  played.initialize().deliver({"3", "1", "2"}).advance(2min);
  CHECK(ended == std::vector<std::string>{"1 ends at 1", "2 ends at 2"});
  played.advance(59s);
  CHECK(ended.size() == 2);
  played.advance(1s);
  CHECK(ended.size() == 3);
}

TEST_CASE("a crash ends the handlers that wait, and a successor begins with their records",
          "[testing][threads]") {
  std::vector<std::string> ended;
  int unwound = 0;
  const auto handle = sleeping(ended);
  worker played(parallel(
      [&](const record& one, const shard_context& shard) {
        const std::shared_ptr<void> local(nullptr, [&](void*) { ++unwound; });
        handle(one, shard);
      },
      {}, three_lanes));
  played.initialize().deliver({"1", "60", "2"}).advance(1min).crash();
  CHECK(unwound == 3);
  CHECK(ended == std::vector<std::string>{"1 ends at 1"});
  played.resume().end_shard();
  CHECK(ended.size() == 4);
}

TEST_CASE("a handler that crashes the process takes those with it that wait",
          "[testing][threads]") {
  worker* self = nullptr;
  int ended = 0;
  worker played(parallel(
      [&](const record& one, const shard_context& shard) {
        shard.sleep_for(std::stoi(std::string(one.data())) * 1min);
        if (one.data() == "2") self->crash();
        ++ended;
      },
      {}, three_lanes));
  self = &played;
  played.initialize().deliver({"1", "3", "2"}).advance(1h);
  CHECK(ended == 1);
  CHECK(played.persisted() == sequence_position("TRIM_HORIZON"));
}

TEST_CASE("thousands of handlers can wait", "[testing][threads]") {
  constexpr int lanes = 3000;
  int ended = 0;
  worker played(parallel(
      [&](const record&, const shard_context& shard) {
        shard.sleep_for(1h);
        ++ended;
      },
      {}, {.lanes = lanes, .order = order::none, .window_records = lanes}));
  const auto begin = played.initialize().now();
  played.deliver(std::vector<std::string>(lanes, "a")).end_shard();
  CHECK(ended == lanes);
  CHECK(played.now() - begin == 1h);
}

TEST_CASE("a handler that waits again and again without end ends the action",
          "[testing][threads][endless]") {
  const auto period = GENERATE(0ms, 1h);
  worker played(parallel(
      [&](const record&, const shard_context& shard) {
        for (;;) shard.sleep_for(period);
      },
      {}, three_lanes));
  played.initialize();
  const std::string why = refusal([&] { played.deliver({"a", "b"}).end_shard(); });
  CHECK_THAT(why, Contains("without progress"));
  CHECK_FALSE(played.exit_status());
}

TEST_CASE("checkpoint handlers run one at a time, also when they wait", "[testing][threads]") {
  int inside = 0;
  int most = 0;
  const shard_context* shard = nullptr;
  auto played = scripted(with_batch([&](const checkpointer& checkpointer) {
                           checkpointer.async_checkpoint({}, [&](std::error_code) {
                             most = std::max(most, ++inside);
                             shard->sleep_for(1min);
                             --inside;
                           });
                         }),
                         manual());
  shard = played.initialize().processor<recording_processor>().context;
  const auto begin = played.now();
  played.deliver({"a"}).deliver({"b"}).deliver({"c"});
  CHECK(played.now() == begin);
  CHECK(inside == 1);
  played.advance(3min);
  CHECK(inside == 0);
  CHECK(most == 1);
}

TEST_CASE("time that a handler lets pass is that handler's", "[testing][threads]") {
  worker* self = nullptr;
  std::vector<std::string> ended;
  worker played(parallel(
      [&](const record& one) {
        self->advance(one.data() == "slow" ? 2h : 1h);
        ended.emplace_back(one.data());
      },
      {}, three_lanes));
  self = &played;
  const auto begin = played.initialize().now();
  played.deliver({"slow", "quick"}).end_shard();
  CHECK(ended == std::vector<std::string>{"quick", "slow"});
  CHECK(played.now() - begin == 2h);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
// When the callbacks' thread of `parallel` looks again.
#include "processing/next_look.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include "support/catch.hpp"

using namespace kclxx::processing;
using namespace std::chrono_literals;

namespace {

using seconds = std::chrono::seconds;
using time_point = look_situation::time_point;
using wait = look_situation::wait;

constexpr time_point now{100s};

time_point in(seconds time) { return now + time; }

struct row {
  const char* title;
  look_situation situation;
  std::optional<seconds> look;  // from now on; never without a value
};

}  // namespace

TEST_CASE("the callbacks' thread looks again at the earliest time at which something is due",
          "[processing][parallel]") {
  const std::vector<row> table{
      {"between two callbacks, when nothing is due, there is no look", {.now = now}, {}},
      {"a stuck attempt is reported", {.now = now, .next_stuck = in(60s)}, 60s},
      {"a failed record becomes ready", {.now = now, .next_retry = in(5s)}, 5s},
      {"the circuit admits a probe", {.now = now, .next_probe = in(30s)}, 30s},
      {"the earliest of these counts",
       {.now = now, .next_stuck = in(7s), .next_retry = in(5s), .next_probe = in(6s)},
       5s},
      {"a probe that is due needs a runner",
       {.now = now, .needs_runner = true, .next_probe = in(0s)},
       0s},
      {"one that is there takes it", {.now = now, .next_probe = in(0s)}, {}},
      {"and other work is looked after meanwhile",
       {.now = now, .next_retry = in(5s), .next_probe = in(-1s)},
       5s},
      {"without attempts that may begin, retries and probes wait for no look",
       {.now = now,
        .takes_records = false,
        .needs_runner = true,
        .next_retry = in(1s),
        .next_probe = in(2s)},
       {}},
      {"but what is stuck is reported",
       {.now = now, .takes_records = false, .next_stuck = in(60s), .next_retry = in(1s)},
       60s},
      {"a failure is thrown at once",
       {.now = now, .has_failure = true, .takes_records = false},
       0s},
      {"a callback that waits looks at its deadline",
       {.now = now, .waits = wait{.deadline = in(15s)}},
       15s},
      {"a callback that has reached its goal looks at once",
       {.now = now, .next_retry = in(5s), .waits = wait{.has_reached_goal = true}},
       0s},
      {"while a callback waits, checkpoints are requested",
       {.now = now, .next_retry = in(5s), .waits = wait{.next_checkpoint = in(1s)}},
       1s},
      {"also when no attempt may begin",
       {.now = now, .takes_records = false, .waits = wait{.next_checkpoint = in(1s)}},
       1s},
      {"a callback that waits throws a failure at once",
       {.now = now, .has_failure = true, .waits = wait{.deadline = in(15s)}},
       0s},
  };
  for (const row& expected : table) {
    CAPTURE(expected.title);
    CHECK(next_look(expected.situation) == (expected.look ? in(*expected.look) : never));
  }
}

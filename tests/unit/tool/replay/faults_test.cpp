// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/faults.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace kclxx::replay;

namespace {

std::string why_not(const std::string& text) {
  try {
    parse_faults(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "it is fine";
}

std::vector<bool> throws_of(fault_draws trial, double probability) {
  std::vector<bool> results;
  for (int i = 0; i < 1000; ++i) results.push_back(trial.draw(probability));
  return results;
}

}  // namespace

TEST_CASE("faults are read from one text", "[replay][faults]") {
  const faults read = parse_faults(
      "throttle=0.25,dependency=1,shutdown-at=3,lease-lost-at=500,"
      "end-of-input-at=7,kill-at=1,kill=0.5,seed=18446744073709551615");
  CHECK(read.throttle == 0.25);
  CHECK(read.dependency == 1);
  CHECK(read.shutdown_at == 3U);
  CHECK(read.lease_lost_at == 500U);
  CHECK(read.end_of_input_at == 7U);
  CHECK(read.kill_at == 1U);
  CHECK(read.kill == 0.5);
  CHECK(read.seed == 18446744073709551615U);
}

TEST_CASE("a fault that cannot be understood is named", "[replay][faults]") {
  CHECK(why_not("throttle=1.5") == "the fault throttle=1.5 needs a probability from 0 to 1");
  CHECK(why_not("throttle=nan") == "the fault throttle=nan needs a probability from 0 to 1");
  CHECK(why_not("dependency=0.1x").starts_with("the fault dependency=0.1x needs"));
  CHECK(why_not("kill=1") ==
        "the fault kill=1 needs a probability below 1, or no life would ever end");
  CHECK(why_not("kill=-0.1") == "the fault kill=-0.1 needs a probability from 0 to 1");
  CHECK(why_not("kill-at=0").starts_with("the fault kill-at=0 needs the number of a batch"));
  CHECK(why_not("kill-at=record:4").starts_with("the fault kill-at=record:4 needs"));
  CHECK(why_not("kill-at=-3").starts_with("the fault kill-at=-3 needs"));
  CHECK(why_not("seed=x").starts_with("the fault seed=x needs a number"));
  CHECK(why_not("throttle") == "the fault 'throttle' has no value: NAME=VALUE");
  CHECK(why_not("") == "the fault '' has no value: NAME=VALUE");
  CHECK(why_not("throttle=0.1,").starts_with("the fault '' has no value"));
  CHECK(why_not("throttle=0.1,kill-at=2,throttle=0.2") == "the fault throttle is there twice");
  CHECK(why_not("fire=1").starts_with("there is no fault 'fire'; there are throttle"));
}

TEST_CASE("draws are the same for the same seed and shard, and keep to the probability",
          "[replay][faults]") {
  const auto draws = throws_of(fault_draws(1, "shard"), 0.3);
  CHECK(draws == throws_of(fault_draws(1, "shard"), 0.3));
  CHECK(draws != throws_of(fault_draws(2, "shard"), 0.3));
  CHECK(draws != throws_of(fault_draws(1, "other"), 0.3));
  const auto count = std::count(draws.begin(), draws.end(), true);
  CHECK(count > 240);  // four standard deviations
  CHECK(count < 360);
  CHECK(throws_of(fault_draws(1, "shard"), 0) == std::vector<bool>(1000, false));
  CHECK(throws_of(fault_draws(1, "shard"), 1) == std::vector<bool>(1000, true));
}

TEST_CASE("a fault happens at the batch of its number", "[replay][faults]") {
  using after = fault_schedule::after_line;
  fault_schedule shard(parse_faults("kill-at=2,lease-lost-at=3,shutdown-at=4"));
  shard.begin_batch(3);
  CHECK(shard.take_what_follows_line() == after::nothing);
  CHECK_FALSE(shard.is_lease_lost());
  shard.begin_batch(4);
  CHECK(shard.take_what_follows_line() == after::kill);
  CHECK(shard.take_what_follows_line() == after::nothing);
  CHECK_FALSE(shard.is_lease_lost());
  CHECK_FALSE(shard.shutdown_replaces_batch());
  shard.begin_batch(1);
  CHECK(shard.is_lease_lost());
  CHECK(shard.records() == 8);
  CHECK(shard.unmet() == std::vector<std::string>{"shutdown-at=4 was not reached: the last was "
                                                  "batch 3"});
  CHECK(shard.shutdown_replaces_batch());
  CHECK(shard.unmet().empty());
}

TEST_CASE("kill-at happens once, also when another kill came first", "[replay][faults]") {
  using after = fault_schedule::after_line;
  fault_schedule shard(parse_faults("kill-at=2"));
  shard.begin_batch(1);
  shard.begin_successor();
  shard.begin_batch(1);
  CHECK(shard.unmet() ==
        std::vector<std::string>{"kill-at=2 was not reached: the last was batch 1"});
  shard.begin_batch(1);
  CHECK(shard.take_what_follows_line() == after::kill);
  shard.begin_successor();
  shard.begin_batch(1);
  shard.begin_batch(1);
  CHECK(shard.take_what_follows_line() == after::nothing);
  CHECK(shard.unmet().empty());
}

TEST_CASE("a fault whose batch no successor gets, since it was persisted, is named so",
          "[replay][faults]") {
  fault_schedule shard(parse_faults("kill-at=1,shutdown-at=3"));
  shard.begin_batch(1);
  static_cast<void>(shard.take_what_follows_line());
  shard.begin_successor();
  for (int i = 0; i < 4; ++i) shard.skip(1, true);
  shard.begin_batch(1);
  CHECK(shard.unmet() == std::vector<std::string>{"shutdown-at=3 did not happen: batch 3 was "
                                                  "persisted before, so that no successor got it"});
}

TEST_CASE("a fault that was never drawn is named, with the number of draws", "[replay][faults]") {
  fault_schedule shard(parse_faults("throttle=0.000001,dependency=1,kill=0.9,seed=1"));
  shard.begin_shard("shard");
  CHECK_FALSE(shard.had_fault());
  const std::string no_kill = "kill=0.9 did not happen: there were 0 checkpoints";
  CHECK(shard.unmet() ==
        std::vector<std::string>{"throttle=1e-06 did not happen: there were 0 checkpoints",
                                 "dependency=1 did not happen: there were 0 checkpoints", no_kill});
  CHECK(shard.checkpoint_failure() == "KinesisClientLibDependencyException");
  CHECK(shard.had_fault());
  CHECK(shard.unmet() == std::vector<std::string>{
                             "throttle=1e-06 did not happen: there were 1 checkpoints", no_kill});
}

TEST_CASE("a successor has the lease until it reaches the fault itself", "[replay][faults]") {
  fault_schedule shard(parse_faults("kill-at=2,lease-lost-at=2"));
  shard.begin_shard("shard");
  shard.begin_batch(1);
  shard.begin_batch(1);
  CHECK(shard.is_lease_lost());
  CHECK(shard.take_what_follows_line() == fault_schedule::after_line::kill);
  shard.begin_successor();
  CHECK_FALSE(shard.is_lease_lost());
  shard.skip(1, true);
  shard.begin_batch(1);
  CHECK(shard.is_lease_lost());
  CHECK(shard.unmet().empty());
}

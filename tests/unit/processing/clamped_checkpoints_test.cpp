// SPDX-License-Identifier: Apache-2.0
// Checkpoints that handlers request by themselves: they never pass a record that is not complete.
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

enum class asked { record, everything, in_timer };

void ask(asked how, const record& one, const shard_context& shard) {
  const auto with = shard.get_checkpointer();
  switch (how) {
    case asked::record:
      return with.async_checkpoint(one);
    case asked::everything:
      return with.async_checkpoint();
    case asked::in_timer:
      shard.after(0ms, [with] { with.async_checkpoint(); });
  }
}

}  // namespace

TEST_CASE("in parallel no handler can checkpoint over a record that is not complete",
          "[processing][clamped]") {
  const auto how = GENERATE(asked::record, asked::everything, asked::in_timer);
  CAPTURE(how);
  bool is_mended = false;
  parallel_daemon daemon([&](const record& one, const shard_context& shard) {
    if (one.data() == "bad" && !is_mended) throw std::runtime_error("no");
    ask(how, one, shard);
  });
  deliver(daemon, {{"a", "bad"}, {"b", "fine"}});
  daemon.advance(1s).deliver({}).advance(1s).deliver({});
  CHECK(daemon.checkpoints().empty());
  is_mended = true;
  daemon.advance(1min).deliver({});
  CHECK(daemon.persisted() == sequence_position("2"));
}

TEST_CASE("in each and batches no handler can checkpoint over the rest of its batch",
          "[processing][clamped]") {
  const auto how = GENERATE(asked::record, asked::everything);
  const auto which = GENERATE(form::each, form::batches);
  CAPTURE(how, which);
  std::optional<testing::daemon> daemon;
  const auto handle = [&](const record& one, const shard_context& shard) {
    if (one.data() == "crash") {
      shard.sleep_for(1min);  // what was requested is sent meanwhile
      daemon->crash();
    }
    ask(how, one, shard);
  };
  daemon.emplace(make(which, handle), prompt());
  daemon->initialize().deliver({"1", "2", "crash", "4"});
  CHECK(daemon->persisted() == sequence_position(which == form::batches ? "TRIM_HORIZON" : "2"));
}

TEST_CASE("the handler of a clamped checkpoint is called when its target is persisted",
          "[processing][clamped]") {
  bool is_mended = false;
  std::vector<std::string> order;
  std::optional<parallel_daemon> daemon;
  daemon.emplace([&](const record& one, const shard_context& shard) {
    if (one.data() == "bad" && !is_mended) throw std::runtime_error("no");
    shard.get_checkpointer().async_checkpoint(
        one, [&order, name = std::string(one.data())](std::error_code ec) {
          order.push_back(name + (ec ? " failed" : " is persisted"));
        });
  });
  deliver(*daemon, {{"a", "bad"}, {"b", "fine"}});
  SECTION("once the oldest record is complete") {
    daemon->deliver({}).deliver({});
    CHECK(order.empty());
    is_mended = true;
    daemon->advance(1min).deliver({}).deliver({});
    CHECK(order == strings{"bad is persisted", "fine is persisted"});
  }
  SECTION("with the reason when it never will be") {
    daemon->lose_lease();
    CHECK(order == strings{"fine failed"});
  }
  SECTION("with the reason at the end of the session") {
    daemon->end_input();
    daemon.reset();  // the processor ends
    CHECK(order == strings{"fine failed"});
  }
}

TEST_CASE("a request without a target waits for its records, though the attempt fails",
          "[processing][clamped]") {
  std::optional<testing::daemon> daemon;
  std::vector<sequence_position> seen;
  bool has_failed = false;
  const auto ask_and_fail_once = [&](const shard_context& shard) {
    if (std::exchange(has_failed, true)) return;
    shard.get_checkpointer().async_checkpoint({}, [&](std::error_code ec) {
      CHECK_FALSE(ec);
      seen.push_back(daemon->persisted());
    });
    throw std::runtime_error("busy");
  };
  SECTION("each") {
    daemon.emplace(each([&](const record& one, const shard_context& shard) {
                     if (one.data() == "b") ask_and_fail_once(shard);
                   }),
                   prompt());
  }
  SECTION("batches") {
    daemon.emplace(
        batches([&](const record_batch&, const shard_context& shard) { ask_and_fail_once(shard); }),
        prompt());
  }
  daemon->initialize().deliver({"a", "b"}).deliver({});
  CHECK(seen == std::vector{sequence_position("2")});
}

TEST_CASE("a handler cannot wait for the checkpoint of its own record", "[processing][clamped]") {
  std::vector<std::error_code> seen;
  const auto handle = [&](const record& one, const shard_context& shard) {
    std::error_code ec;
    shard.get_checkpointer().checkpoint(one, ec);
    seen.push_back(ec);
    shard.get_checkpointer().checkpoint({}, ec);  // of what is complete
    seen.push_back(ec);
  };
  const auto which = GENERATE(form::each, form::parallel);
  testing::daemon daemon(make(which, handle), prompt());
  daemon.initialize().deliver({"1"});
  if (which == form::parallel) daemon.deliver({});
  using codes = std::vector<std::error_code>;
  CHECK(seen == codes{errc::not_allowed_here, {}});
}

TEST_CASE("a handler of each can wait for the checkpoint of a record before its own",
          "[processing][clamped]") {
  const bool is_everything = GENERATE(false, true);
  std::optional<sequence_position> previous;
  std::vector<sequence_position> persisted;
  std::optional<testing::daemon> daemon;
  daemon.emplace(
      each([&](const record& one, const shard_context& shard) {
        if (one.data() == "3" || one.data() == "4") {
          shard.get_checkpointer().checkpoint(is_everything ? checkpoint_target() : *previous);
          persisted.push_back(daemon->persisted());
        }
        previous = one.position();
      }),
      prompt());
  daemon->initialize().deliver({"1", "2"}).deliver({"3", "4"});
  CHECK(persisted == std::vector{sequence_position("2"), sequence_position("3")});
}

TEST_CASE("a checkpointer that outlives each's processor has nothing to ask",
          "[processing][clamped]") {
  std::optional<checkpointer> kept;
  {
    testing::daemon daemon(
        each([&](const record&, const shard_context& shard) { kept = shard.get_checkpointer(); }),
        prompt());
    daemon.initialize().deliver({"1"});
  }
  std::error_code ec;
  kept->checkpoint({}, ec);
  CHECK(ec == errc::daemon_gone);
}

TEST_CASE("a lot, too, sees checkpoints of complete records only", "[processing][clamped]") {
  struct eager final : parking_lot {
    void park(const shard_context& shard, const failed_record& failed) override {
      shard.get_checkpointer().async_checkpoint(failed.record);
      shard.sleep_for(1min);
      throw std::runtime_error("full");
    }
  };
  testing::daemon daemon(each([](const record&) { throw permanent_error("bad"); },
                              {.bad_record = bad_record::park, .lot = std::make_shared<eager>()}),
                         prompt());
  daemon.initialize();
  daemon.end_input_in_next_callback();
  daemon.deliver({"1"});
  CHECK(daemon.checkpoints().empty());
}

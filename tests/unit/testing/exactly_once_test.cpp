// SPDX-License-Identifier: Apache-2.0
// The recipe of docs/processing.md, whose processor is the one here.
#include <cstdint>
#include <map>
#include <string>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"

using kclxx::sequence_position;
using namespace std::chrono_literals;

namespace {

/// A row per shard, and the totals: what a database has.
struct database {
  struct shard_row {
    std::uint64_t epoch = 0;
    sequence_position position{"TRIM_HORIZON"};
  };
  std::map<std::string, shard_row> shards;
  std::map<std::string, int> totals;
};

database* connected = nullptr;

class table {
 public:
  explicit table(const std::string& shard)
      : shard_(connected->shards[shard]), epoch_(++shard_.epoch), position_(shard_.position) {}
  const sequence_position& position() const { return position_; }

 private:
  friend class transaction;
  database::shard_row& shard_;
  std::uint64_t epoch_;
  sequence_position position_;  // the last one that this processor knows to be stored
};

class transaction {
 public:
  explicit transaction(table& on) : on_(on), totals_(connected->totals) {}
  void add(const kclxx::record& event) { ++totals_[std::string(event.data())]; }
  void commit(const sequence_position& position) {
    if (on_.shard_.epoch != on_.epoch_) throw kclxx::fenced_error("totals: another epoch");
    connected->totals = totals_;
    on_.position_ = on_.shard_.position = position;
  }

 private:
  table& on_;
  std::map<std::string, int> totals_;
};

class totals : public kclxx::record_processor {
 public:
  // Raises the shard's epoch and reads the position, in one transaction.
  explicit totals(const kclxx::shard_context& shard) : table_(shard.shard_id()) {}

  void process_records(kclxx::record_batch batch,
                       const kclxx::checkpointer& checkpointer) override {
    batch = batch.after(table_.position());  // the rest has its effect already
    if (batch.empty()) return;
    transaction t(table_);
    for (const kclxx::record& event : batch) t.add(event);
    t.commit(batch.back().position());  // if the epoch is still ours; else throws fenced_error
    checkpointer.async_checkpoint(batch);
  }

 private:
  table table_;
};

}  // namespace

TEST_CASE("the recipe: every effect once, whoever wakes up, crashes or starts again",
          "[testing][P65]") {
  database stored;
  connected = &stored;
  kclxx::testing::daemon old(
      [](const kclxx::shard_context& shard) { return std::make_unique<totals>(shard); });
  old.initialize().deliver({"a", "b"}).fail_next_checkpoint("ThrottlingException");
  old.advance(5s).deliver({"a"});
  old.crash().resume();  // the third record is delivered again
  CHECK(stored.totals == std::map<std::string, int>{{"a", 2}, {"b", 1}});

  auto successor = old.start_successor();
  successor.deliver({"c"});
  old.deliver({"d"});  // it receives "c" and "d", and is refused
  INFO(old << "\n" << successor);
  CHECK(old.stop_requested());
  successor.deliver({});
  CHECK(stored.totals == std::map<std::string, int>{{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}});
}

TEST_CASE("a processor that starts late shuts the lease's owner out, which therefore leaves",
          "[testing][P68]") {
  database stored;
  connected = &stored;
  kclxx::testing::daemon owner(
      [](const kclxx::shard_context& shard) { return std::make_unique<totals>(shard); });
  owner.initialize().deliver({"a"});
  ++stored.shards["shardId-000000000000"].epoch;  // by one whose worker had lost the lease before
  owner.deliver({"b"}).advance(60s).deliver({"c"}).advance(4min).deliver({"d"});
  INFO(owner);
  CHECK(owner.log().size() == 3);
  CHECK(owner.exit_status() == kclxx::exit_status::callback_failed);
  owner.resume();  // on another worker, or after a restart
  CHECK(stored.totals == std::map<std::string, int>{{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}});
}

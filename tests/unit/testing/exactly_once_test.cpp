// SPDX-License-Identifier: Apache-2.0
// The recipe of docs/exactly-once.md, whose code is the one here.
#include <map>
#include <string>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/worker.hpp>

#include "support/catch.hpp"

using kclxx::sequence_position;
using namespace std::chrono_literals;

namespace {

struct database {
  std::map<std::string, sequence_position> positions;
  std::map<std::string, int> totals;
  bool loses_answer = false;  // to the next commit
};

/// Nothing else runs meanwhile, so the lock is there without a further line.
class transaction {
 public:
  explicit transaction(database& database) : on_(database), changed_(database) {}
  const sequence_position& locked_position(const std::string& shard) {
    return changed_.positions.try_emplace(shard, "TRIM_HORIZON").first->second;
  }
  void add(const kclxx::record& event) { ++changed_.totals[std::string(event.data())]; }
  void set_position(const std::string& shard, const sequence_position& position) {
    changed_.positions.at(shard) = position;
  }
  void commit() {
    const bool is_lost = std::exchange(changed_.loses_answer, false);
    on_ = changed_;
    if (is_lost) throw std::runtime_error("the connection broke");
  }

 private:
  database& on_;
  database changed_;
};

kclxx::processor_factory count_in(database& store) {
  return kclxx::batches([&store](kclxx::record_batch batch, const kclxx::shard_context& shard) {
    transaction change(store);
    batch = batch.after(change.locked_position(shard.shard_id()));
    if (batch.empty()) return;
    for (const kclxx::record& event : batch) change.add(event);
    change.set_position(shard.shard_id(), batch.back().position());
    change.commit();
  });
}

}  // namespace

TEST_CASE("the recipe: every effect once, whoever crashes, wakes up or is first", "[testing]") {
  using sums = std::map<std::string, int>;
  database stored;
  kclxx::testing::worker old(count_in(stored));
  old.initialize().deliver({"a", "b"}).fail_next_checkpoint("ThrottlingException");
  old.advance(5s).deliver({"a"});
  old.crash().resume();  // the third record is delivered again
  CHECK(stored.totals == sums{{"a", 2}, {"b", 1}});

  auto successor = old.start_successor();
  successor.deliver({"c"});
  old.deliver({"d"});  // it has lost the lease, and receives "c" and "d"
  INFO(old << "\n" << successor);
  CHECK(stored.totals == sums{{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}});
  successor.deliver({"e"});  // after "d", which its predecessor has counted
  CHECK(stored.totals == sums{{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}});

  stored.loses_answer = true;
  successor.deliver({"f", "g"});  // tried again
  CHECK(stored.totals ==
        sums{{"a", 2}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}, {"g", 1}});
}

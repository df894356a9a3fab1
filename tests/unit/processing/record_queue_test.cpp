// SPDX-License-Identifier: Apache-2.0
// What is ready, and what is complete: the window of parallel(), without threads.
#include "processing/record_queue.hpp"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "unit/processing/owned_batch.hpp"

namespace {

using namespace kclxx;
using processing::ordinal;
using processing::record_queue;
using test::owned_batch;
using namespace std::chrono_literals;

const record_queue::time_point now{};

owned_batch::keys_and_data of_keys(const std::vector<std::string>& keys) {
  owned_batch::keys_and_data result;
  for (const std::string& key : keys) result.emplace_back(key, "data");
  return result;
}

/// Batches with sequence numbers from 1 on.
struct queue_with_records : record_queue {
  using record_queue::record_queue;
  std::size_t add(const std::vector<std::string>& keys) {
    const owned_batch batch(of_keys(keys), next);
    next += keys.size();
    return admit(batch.get(), 0, now);
  }
  std::vector<ordinal> take_all() {
    std::vector<ordinal> result;
    while (const auto one = take()) result.push_back(*one);
    return result;
  }
  std::uint64_t next = 1;
};

}  // namespace

TEST_CASE("a failed record that is due is taken after the new ones, unless it is to come first",
          "[processing]") {
  queue_with_records queue(order::none, 100, 1000);
  queue.add({"a", "b", "c"});
  queue.retry_at(*queue.take(), now);
  queue.make_due_ready(now);
  CHECK(queue.ready() == 3);
  SECTION("after them") { CHECK(queue.take_all() == std::vector<ordinal>{1, 2, 0}); }
  SECTION("first") { CHECK(queue.take(record_queue::choice::failed) == ordinal{0}); }
}

TEST_CASE("a record that is completed twice, or was not delivered, is a fault", "[processing]") {
  queue_with_records queue(GENERATE(order::none, order::key), 100, 1000);
  queue.add({"a", "b"});
  queue.take_all();
  queue.complete(1);
  CHECK_THROWS_AS(queue.complete(1), std::logic_error);
  CHECK_THROWS_AS(queue.complete(2), std::logic_error);
  queue.complete(0);
  CHECK_THROWS_AS(queue.complete(0), std::logic_error);
  CHECK(to_string(*queue.window().watermark()) == "2/0");
}

TEST_CASE("a window takes no more records than its limits", "[processing]") {
  queue_with_records queue(order::none, 3, 1000);
  const owned_batch batch(of_keys({"a", "b", "c", "d"}), 1);
  CHECK(queue.admit(batch.get(), 0, now) == 3);
  CHECK_FALSE(queue.wants_more(batch.get()[3].data().size()));
  CHECK(queue.admit(batch.get(), 3, now) == 0);
  CHECK(queue.take_all().size() == 3);
  queue.complete(1);  // the window begins at the oldest that is not complete
  CHECK(queue.admit(batch.get(), 3, now) == 0);
  queue.complete(0);
  CHECK(queue.wants_more(batch.get()[3].data().size()));
  CHECK(queue.admit(batch.get(), 3, now) == 1);
}

TEST_CASE("a window wants no record that does not fit, though nothing is ready", "[processing]") {
  record_queue queue(order::none, 10, 5);
  const owned_batch batch(of_keys({"a", "b"}), 3);
  CHECK(queue.admit(batch.get(), 0, now) == 1);
  CHECK(queue.take() == ordinal{0});
  CHECK_FALSE(queue.wants_more(batch.get()[1].data().size()));
  queue.complete(0);
  CHECK(queue.wants_more(batch.get()[1].data().size()));
}

TEST_CASE("while records are ready, a window with little room in bytes wants no more",
          "[processing]") {
  record_queue queue(order::none, 100, 16);
  const owned_batch batch({{"a", "12345"}, {"b", "1234567890"}, {"c", "1"}}, 1);
  CHECK(queue.admit(batch.get().slice(0, 2), 0, now) == 2);
  CHECK_FALSE(queue.wants_more(batch.get()[2].data().size()));
  CHECK(queue.take() == ordinal{0});
  CHECK(queue.take() == ordinal{1});
  CHECK(queue.wants_more(batch.get()[2].data().size()));
}

TEST_CASE(
    "while records are ready, a window with less than an eighth of its records free wants "
    "no more",
    "[processing]") {
  queue_with_records queue(order::none, 16, 1000);
  queue.add(std::vector<std::string>(15, "a"));
  const owned_batch next(of_keys({"a"}), 16);
  CHECK_FALSE(queue.wants_more(next.get()[0].data().size()));
  queue.complete(*queue.take());
  CHECK(queue.wants_more(next.get()[0].data().size()));
}

TEST_CASE("an eighth of the records is rounded up, and of the bytes it is exact", "[processing]") {
  queue_with_records of_17(order::none, 17, 1000);
  of_17.add(std::vector<std::string>(15, "a"));
  const owned_batch next(of_keys({"a"}), 17);
  CHECK_FALSE(of_17.wants_more(next.get()[0].data().size()));
  of_17.complete(*of_17.take());
  CHECK(of_17.wants_more(next.get()[0].data().size()));
  record_queue of_16_bytes(order::none, 100, 16);
  const owned_batch batch({{"a", "12345678901234"}, {"b", "1"}}, 1);
  CHECK(of_16_bytes.admit(batch.get().slice(0, 1), 0, now) == 1);
  CHECK(of_16_bytes.wants_more(batch.get()[1].data().size()));
}

TEST_CASE("a record that is larger than the window has it to itself", "[processing]") {
  record_queue queue(order::none, 10, 5);
  const owned_batch batch({{"a", "12"}, {"b", "1234567890"}, {"c", "12"}}, 1);
  CHECK(queue.admit(batch.get(), 0, now) == 1);
  CHECK(queue.admit(batch.get(), 1, now) == 0);
  queue.complete(*queue.take());
  CHECK(queue.admit(batch.get(), 1, now) == 1);
  CHECK(queue.admit(batch.get(), 2, now) == 0);
  queue.complete(*queue.take());
  CHECK(queue.admit(batch.get(), 2, now) == 1);
}

TEST_CASE("the window's data is that of the batches which have a record that is not complete",
          "[processing]") {
  record_queue queue(order::none, 10, 100);
  owned_batch first({{"a", "12"}, {"b", "345"}}, 1);
  auto [batch, memory] = first.take();
  queue.admit(batch, 0, now);
  batch = {};
  CHECK(queue.window().bytes() == 5);
  queue.complete(0);
  CHECK(queue.window().bytes() == 5);
  CHECK(queue.window().incomplete_bytes() == 3);
  CHECK_FALSE(memory.expired());
  queue.complete(1);
  CHECK(queue.window().bytes() == 0);
  CHECK_FALSE(memory.expired());  // it is given back without a lock
  CHECK(queue.take_passed().size() == 1);
  CHECK(memory.expired());
}

TEST_CASE("an empty batch changes nothing", "[processing]") {
  record_queue queue(order::key, 10, 100);
  CHECK(queue.admit({}, 0, now) == 0);
  CHECK(queue.window().is_empty());
  CHECK(queue.take() == std::nullopt);
}

TEST_CASE("records without a partition key are one key", "[processing]") {
  record_queue queue(order::key, 10, 100);
  const std::vector<record> records(2, record(record::fields{.sequence_number = "1"}));
  queue.admit({records, nullptr}, 0, now);
  CHECK(queue.take() == ordinal{0});
  CHECK(queue.take() == std::nullopt);
  queue.complete(0);
  CHECK(queue.take() == ordinal{1});
}

TEST_CASE("a cleared queue counts nothing and keeps nothing but the position", "[processing]") {
  queue_with_records queue(order::key, 100, 1000);
  queue.add({"a", "a", "b", "c"});
  queue.complete(*queue.take());
  queue.retry_at(*queue.take(), now);
  queue.clear();
  CHECK(queue.window().is_empty());
  CHECK(queue.window().incomplete() == 0);
  CHECK(queue.window().bytes() == 0);
  CHECK(queue.window().incomplete_bytes() == 0);
  CHECK(queue.ready() == 0);
  CHECK(queue.next_due() == std::nullopt);
  CHECK(queue.window().watermark() == sequence_position("1"));
}

namespace {

/// The same as the queue, in the obvious way.
class slow_model {
 public:
  explicit slow_model(order in) : order_(in) {}
  void add(const std::string& key) { keys_.push_back(key); }
  [[nodiscard]] std::optional<ordinal> next(bool failed_first) const {
    const auto fresh = oldest_new();
    return failed_.empty() || (fresh && !failed_first) ? fresh : failed_.front();
  }
  [[nodiscard]] std::optional<ordinal> oldest_new() const {
    std::set<std::string> blocked;
    for (ordinal which = 0; which < keys_.size(); ++which) {
      if (complete_.contains(which)) continue;
      const std::string& key = keys_[which];
      const bool is_first = order_ == order::none || blocked.insert(key).second;
      if (is_first && !taken_.contains(which)) return which;
    }
    return std::nullopt;
  }
  void take(ordinal which) {
    taken_.insert(which);
    if (!failed_.empty() && failed_.front() == which) failed_.pop_front();
  }
  void put_back(ordinal which) { failed_.push_back(which); }
  void complete(ordinal which) { complete_.insert(which); }
  [[nodiscard]] ordinal begin() const {
    ordinal which = 0;
    while (complete_.contains(which)) ++which;
    return which;
  }
  [[nodiscard]] ordinal size() const { return keys_.size(); }

 private:
  order order_;
  std::vector<std::string> keys_;
  std::set<ordinal> taken_;  // once
  std::deque<ordinal> failed_;
  std::set<ordinal> complete_;
};

}  // namespace

TEST_CASE("the queue does what a slow model of it does, in random order with failures",
          "[processing]") {
  const auto seed = GENERATE(range(1U, 13U));
  CAPTURE(seed);
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  const order in = seed % 2 == 0 ? order::key : order::none;
  // Half of the windows fill their ring exactly: a wrong place in it is another record's.
  const std::size_t window = seed % 4 < 2 ? std::size_t{64} << below(3) : 1 + below(200);
  const std::size_t keys = 1 + below(60);
  record_queue queue(in, window, 1'000'000);
  slow_model model(in);
  std::vector<ordinal> taken;
  record_queue::time_point time{};
  std::uint64_t next = 1;
  for (int step = 0; step < 1000; ++step) {
    switch (below(4)) {
      case 0: {
        std::vector<std::string> batch(below(30));
        for (auto& key : batch) key = std::to_string(below(keys));
        const owned_batch owned(of_keys(batch), next);
        const std::size_t count = queue.admit(owned.get(), 0, time);
        REQUIRE(count == std::min(batch.size(), window - (model.size() - model.begin())));
        for (std::size_t i = 0; i < count; ++i) model.add(batch[i]);
        next += count;
        break;
      }
      case 1: {
        const bool failed_first = below(2) == 0;
        using choice = record_queue::choice;
        const auto one = queue.take(failed_first ? choice::failed : choice::oldest);
        REQUIRE(one == model.next(failed_first));
        if (!one) break;
        model.take(*one);
        taken.push_back(*one);
        break;
      }
      default: {
        if (taken.empty()) break;
        const std::size_t at = below(taken.size());
        const ordinal which = taken[at];
        taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(at));
        if (below(4) == 0) {
          time += 1ms;
          queue.retry_at(which, time);
          queue.make_due_ready(time);
          model.put_back(which);
        } else {
          queue.complete(which);
          model.complete(which);
        }
      }
    }
    REQUIRE(queue.window().begin() == model.begin());
    REQUIRE(queue.window().size() == model.size() - model.begin());
    const auto position = queue.window().watermark();
    REQUIRE((position ? position->sequence_number() : "0") == std::to_string(model.begin()));
  }
}

TEST_CASE("keys can be given with the records", "[processing]") {
  record_queue queue(order::key, 10, 100);
  const owned_batch batch(of_keys({"a", "a", "b", "b"}), 1);
  std::vector<std::string> keys{"x", "y", "x", "y"};
  queue.admit(batch.get(), 0, now, keys);
  CHECK(queue.take() == ordinal{0});
  CHECK(queue.take() == ordinal{1});
  CHECK(queue.take() == std::nullopt);
  queue.complete(1);
  CHECK(queue.take() == ordinal{3});
}

// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <stdexcept>
#include <utility>
#include <variant>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"

namespace {

using kclxx::observer;
using kclxx::sequence_position;
using kclxx::testing::daemon;
using namespace std::chrono_literals;

class collecting final : public kclxx::observer {
 public:
  struct seen {
    observer::event_source source;
    observer::shard_event event;
  };
  std::vector<seen> all;

  void on_event(const observer::event_source& source, const observer::shard_event& event) override {
    all.push_back({source, event});
  }
  template <class Event>
  [[nodiscard]] std::vector<Event> of() const {
    std::vector<Event> result;
    for (const seen& one : all) {
      if (const auto* event = std::get_if<Event>(&one.event)) result.push_back(*event);
    }
    return result;
  }
};

class throwing final : public kclxx::observer {
 public:
  void on_event(const observer::event_source&, const observer::shard_event&) override {
    throw std::runtime_error("no disk");
  }
};

kclxx::run_options observed_by(std::shared_ptr<kclxx::observer> observer) {
  kclxx::run_options options;
  options.observers = {std::move(observer)};
  options.checkpoint_interval = 0ms;
  return options;
}

const auto ignore = [](kclxx::record_batch) {};

TEST_CASE("events carry the virtual time, and durations in it", "[testing][observer]") {
  const auto seen = std::make_shared<collecting>();
  daemon played(
      [](const kclxx::shard_context& shard) -> std::unique_ptr<kclxx::record_processor> {
        class slow final : public kclxx::record_processor {
         public:
          explicit slow(const kclxx::shard_context& context) : context_(context) {}
          void process_records(kclxx::record_batch, const kclxx::checkpointer&) override {
            context_.sleep_for(3s);
          }

         private:
          const kclxx::shard_context& context_;
        };
        return std::make_unique<slow>(shard);
      },
      observed_by(seen));
  played.initialize().advance(1min).deliver({"a"});

  const auto ended = seen->of<kclxx::observer::callback_ended>();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0] == kclxx::observer::callback_ended{observer::callback_kind::initialize, 0ns});
  CHECK(ended[1] == kclxx::observer::callback_ended{observer::callback_kind::process_records, 3s});
  const auto& first = seen->all.front().source;
  const auto& last = seen->all.back().source;
  CHECK(last.time - first.time == 63s);
  CHECK(last.date - first.date == 63s);
}

TEST_CASE("a processor's own events reach the observer", "[testing][observer]") {
  const auto seen = std::make_shared<collecting>();
  daemon played(
      [](kclxx::record_batch batch, const kclxx::checkpointer& checkpointer) {
        REQUIRE(checkpointer.service()->is_observed());
        checkpointer.service()->observe(kclxx::observer::record_parked{
            .position = batch[0].position(), .attempts = 5, .error = "bad"});
      },
      observed_by(seen));
  played.initialize().deliver({"a"});
  CHECK(seen->of<kclxx::observer::record_parked>() ==
        std::vector{kclxx::observer::record_parked{
            .position = sequence_position("1"), .attempts = 5, .error = "bad"}});
}

TEST_CASE("an observer that throws is logged once and changes nothing", "[testing][observer]") {
  daemon played(ignore, observed_by(std::make_shared<throwing>()));
  played.initialize().deliver({"a"}).deliver({"b"}).end_shard();
  CHECK(played.exit_status() == kclxx::exit_status::ok);
  CHECK(played.checkpoints().back() == sequence_position("SHARD_END"));
  REQUIRE(played.log().size() == 1);
  CHECK(played.log()[0].text == "an observer failed: no disk (logged once)");
}

TEST_CASE("without an observer nothing is observed", "[testing][observer]") {
  bool is_observed = true;
  daemon played([&](kclxx::record_batch, const kclxx::checkpointer& checkpointer) {
    is_observed = checkpointer.service()->is_observed();
  });
  played.initialize().deliver({"a"});
  CHECK_FALSE(is_observed);
}

}  // namespace

// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <stdexcept>
#include <variant>
#include <vector>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "support/run_options.hpp"

namespace {

using namespace kclxx;
using test::prompt;
using testing::daemon;
using namespace std::chrono_literals;

class collecting final : public observer {
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

class throwing final : public observer {
 public:
  void on_event(const observer::event_source&, const observer::shard_event&) override {
    throw std::runtime_error("no disk");
  }
};

const auto ignore = [](record_batch) {};

TEST_CASE("events carry the virtual time, and durations in it", "[testing][observer]") {
  const auto seen = std::make_shared<collecting>();
  daemon played(
      [](record_batch, const checkpointer& checkpointer) {
        const auto& service = detail::service_access::of(checkpointer);
        service->sleep_until(service->now() + 3s);
      },
      prompt(seen));
  played.initialize().advance(1min).deliver({"a"});

  const auto ended = seen->of<observer::callback_ended>();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0] == observer::callback_ended{observer::callback_kind::initialize, 0ns});
  CHECK(ended[1] == observer::callback_ended{observer::callback_kind::process_records, 3s});
  const auto& first = seen->all.front().source;
  const auto& last = seen->all.back().source;
  CHECK(last.time - first.time == 63s);
  CHECK(last.date - first.date == 63s);
}

TEST_CASE("an observer that throws is logged once and changes nothing", "[testing][observer]") {
  daemon played(ignore, prompt(std::make_shared<throwing>()));
  played.initialize().deliver({"a"}).deliver({"b"}).end_shard();
  CHECK(played.exit_status() == exit_status::ok);
  CHECK(played.checkpoints().back() == sequence_position("SHARD_END"));
  REQUIRE(played.log().size() == 1);
  CHECK(played.log()[0].text == "an observer failed: no disk (logged once)");
}

}  // namespace

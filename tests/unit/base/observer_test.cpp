// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <kclxx/observer.hpp>

#include "support/catch.hpp"

namespace kclxx::test {

namespace {

/// Puts each event together again from the function that received it.
class collecting_observer final : public observer {
 public:
  std::vector<shard_event> seen;

  void on_lease_gained(const event_source&, const lease_gained& e) override {
    seen.emplace_back(e);
  }
  void on_lease_ended(const event_source&, const lease_ended& e) override { seen.emplace_back(e); }
  void on_batch_delivered(const event_source&, const batch_delivered& e) override {
    seen.emplace_back(e);
  }
  void on_callback_ended(const event_source&, const callback_ended& e) override {
    seen.emplace_back(e);
  }
  void on_checkpoint_requested(const event_source&, const checkpoint_requested& e) override {
    seen.emplace_back(e);
  }
  void on_checkpoint_answered(const event_source&, const checkpoint_answered& e) override {
    seen.emplace_back(e);
  }
  void on_session_ended(const event_source&, const session_ended& e) override {
    seen.emplace_back(e);
  }
  void on_record_attempted(const event_source&, const record_attempted& e) override {
    seen.emplace_back(e);
  }
  void on_record_retried(const event_source&, const record_retried& e) override {
    seen.emplace_back(e);
  }
  void on_record_parked(const event_source&, const record_parked& e) override {
    seen.emplace_back(e);
  }
  void on_record_skipped(const event_source&, const record_skipped& e) override {
    seen.emplace_back(e);
  }
  void on_circuit_changed(const event_source&, const circuit_changed& e) override {
    seen.emplace_back(e);
  }
  void on_window_changed(const event_source&, const window_changed& e) override {
    seen.emplace_back(e);
  }
  void on_handlers_stuck(const event_source&, const handlers_stuck& e) override {
    seen.emplace_back(e);
  }
};

std::vector<shard_event> one_of_each() {
  using namespace std::chrono_literals;
  const sequence_position at("101");
  return {lease_gained{at},
          lease_ended{lease_ended::reason::lost},
          batch_delivered{.records = 3, .bytes = 30, .first = at, .last = at},
          callback_ended{callback_kind::process_records, 2ms},
          checkpoint_requested{at},
          checkpoint_answered{at, 5ms, "ThrottlingException"},
          session_ended{exit_status::ok},
          record_attempted{.position = at, .attempt = 2, .duration = 1ms},
          record_retried{.position = at, .attempt = 2, .delay = 200ms},
          record_parked{.position = at, .attempts = 5, .error = "no such user"},
          record_skipped{.position = at, .attempts = 5, .error = "no such user"},
          circuit_changed{.is_open = true, .failures = 20, .error = "connection refused"},
          window_changed{.records = 7, .bytes = 70},
          handlers_stuck{.handlers = 1, .position = at, .age = 60s}};
}

}  // namespace

TEST_CASE("every event reaches the observer's function for it", "[base][observer]") {
  const auto events = one_of_each();
  REQUIRE(events.size() == std::variant_size_v<shard_event>);
  collecting_observer all;
  observer none;
  const event_source source{std::make_shared<shard_names>(), {}, {}};
  for (const shard_event& event : events) {
    all.on_event(source, event);
    none.on_event(source, event);  // what is not overridden does nothing
  }
  CHECK((all.seen == events));
}

}  // namespace kclxx::test

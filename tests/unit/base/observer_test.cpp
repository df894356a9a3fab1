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
  std::vector<observer::shard_event> seen;

  void on_lease_gained(const observer::event_source&, const observer::lease_gained& e) override {
    seen.emplace_back(e);
  }
  void on_lease_ended(const observer::event_source&, const observer::lease_ended& e) override {
    seen.emplace_back(e);
  }
  void on_batch_delivered(const observer::event_source&,
                          const observer::batch_delivered& e) override {
    seen.emplace_back(e);
  }
  void on_callback_ended(const observer::event_source&,
                         const observer::callback_ended& e) override {
    seen.emplace_back(e);
  }
  void on_checkpoint_requested(const observer::event_source&,
                               const observer::checkpoint_requested& e) override {
    seen.emplace_back(e);
  }
  void on_checkpoint_answered(const observer::event_source&,
                              const observer::checkpoint_answered& e) override {
    seen.emplace_back(e);
  }
  void on_session_ended(const observer::event_source&, const observer::session_ended& e) override {
    seen.emplace_back(e);
  }
  void on_record_attempted(const observer::event_source&,
                           const observer::record_attempted& e) override {
    seen.emplace_back(e);
  }
  void on_record_retried(const observer::event_source&,
                         const observer::record_retried& e) override {
    seen.emplace_back(e);
  }
  void on_record_parked(const observer::event_source&, const observer::record_parked& e) override {
    seen.emplace_back(e);
  }
  void on_record_skipped(const observer::event_source&,
                         const observer::record_skipped& e) override {
    seen.emplace_back(e);
  }
  void on_circuit_changed(const observer::event_source&,
                          const observer::circuit_changed& e) override {
    seen.emplace_back(e);
  }
  void on_window_changed(const observer::event_source&,
                         const observer::window_changed& e) override {
    seen.emplace_back(e);
  }
  void on_handlers_stuck(const observer::event_source&,
                         const observer::handlers_stuck& e) override {
    seen.emplace_back(e);
  }
};

std::vector<observer::shard_event> one_of_each() {
  using namespace std::chrono_literals;
  const sequence_position at("101");
  return {observer::lease_gained{at},
          observer::lease_ended{observer::lease_ended::reason::lost},
          observer::batch_delivered{.records = 3, .bytes = 30, .first = at, .last = at},
          observer::callback_ended{observer::callback_kind::process_records, 2ms},
          observer::checkpoint_requested{at},
          observer::checkpoint_answered{at, 5ms, "ThrottlingException"},
          observer::session_ended{exit_status::ok},
          observer::record_attempted{.position = at, .attempt = 2, .duration = 1ms},
          observer::record_retried{.position = at, .attempt = 2, .delay = 200ms},
          observer::record_parked{.position = at, .attempts = 5, .error = "no such user"},
          observer::record_skipped{.position = at, .attempts = 5, .error = "no such user"},
          observer::circuit_changed{.is_open = true, .failures = 20, .error = "connection refused"},
          observer::window_changed{.records = 7, .bytes = 70},
          observer::handlers_stuck{.handlers = 1, .position = at, .age = 60s}};
}

}  // namespace

TEST_CASE("every event reaches the observer's function for it", "[base][observer]") {
  const auto events = one_of_each();
  REQUIRE(events.size() == std::variant_size_v<observer::shard_event>);
  collecting_observer all;
  observer none;
  const observer::event_source source{std::make_shared<observer::shard_names>(), {}, {}};
  for (const observer::shard_event& event : events) {
    all.on_event(source, event);
    none.on_event(source, event);  // what is not overridden does nothing
  }
  CHECK((all.seen == events));
}

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
// What a stop means in every form of processing: neither success nor failure.
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace {

using namespace kclxx;
using namespace kclxx::test;
using namespace std::chrono_literals;

/// Sees what is done about records that fail.
struct failures_seen final : observer {
  void on_event(const event_source&, const shard_event& event) override {
    count += std::holds_alternative<record_retried>(event) ||
             std::holds_alternative<record_skipped>(event) ||
             std::holds_alternative<record_parked>(event);
  }
  int count = 0;
};

}  // namespace

TEST_CASE("what a handler returns or throws after a stop changes nothing", "[processing][stop]") {
  const auto which = GENERATE(form::each, form::batches, form::parallel, form::completions);
  const auto what = GENERATE(bad_record::stop, bad_record::skip, bad_record::park);
  const int attempts = GENERATE(1, 5);
  const bool throws = GENERATE(false, true);
  CAPTURE(which, what, attempts, throws);
  const auto lot = std::make_shared<memory_lot>();
  const auto seen = std::make_shared<failures_seen>();
  std::optional<testing::daemon> daemon;
  daemon.emplace(make(which,
                      [&](const record& one, const shard_context& shard) {
                        if (one.data() != "x") return;
                        daemon->end_input();
                        CHECK_FALSE(shard.sleep_for(1s));
                        if (throws) throw std::runtime_error("cancelled");
                      },
                      {.max_attempts = attempts, .bad_record = what, .lot = lot}),
                 prompt(seen));
  daemon->initialize().deliver({"ok"}).deliver({});
  daemon->deliver({"x"});
  if (!daemon->exit_status()) daemon->deliver({});  // parallel: between callbacks
  CHECK(daemon->exit_status() != exit_status::callback_failed);
  CHECK(daemon->persisted() == sequence_position("1"));
  CHECK(lot->all.empty());
  CHECK(seen->count == 0);
}

TEST_CASE("a record whose handler returns after the session has failed is not checkpointed",
          "[processing][stop]") {
  const auto which = GENERATE(form::each, form::batches, form::parallel, form::completions);
  CAPTURE(which);
  testing::daemon daemon(make(which,
                              [&](const record& one, const shard_context& shard) {
                                if (one.data() != "x") return;
                                shard.fail(std::make_exception_ptr(std::runtime_error("a thread")));
                              },
                              {}),
                         prompt());
  daemon.initialize().deliver({"ok"}).deliver({});
  CHECK(daemon.persisted() == sequence_position("1"));
  daemon.deliver({"x"});
  if (!daemon.exit_status()) daemon.deliver({});
  CHECK(daemon.exit_status() == exit_status::callback_failed);
  CHECK(daemon.persisted() == sequence_position("1"));
}

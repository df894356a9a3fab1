// SPDX-License-Identifier: Apache-2.0
// What a stop means in every form of processing: neither success nor failure.
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>

#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace {

using kclxx::bad_record;
using kclxx::record;
using kclxx::sequence_position;
using kclxx::shard_context;
using namespace kclxx::test;
using test_daemon = kclxx::testing::daemon;
using namespace std::chrono_literals;
using handler = std::function<void(const record&, const shard_context&)>;

enum class form { each, batches, parallel, completions };

kclxx::processor_factory make(form which, const handler& handle,
                              const kclxx::failure_policy& policy) {
  switch (which) {
    case form::each:
      return kclxx::each(handle, policy);
    case form::batches:
      return kclxx::batches(
          [handle](kclxx::record_batch batch, const shard_context& shard) {
            for (const record& one : batch) handle(one, shard);
          },
          policy);
    case form::parallel:
      return kclxx::parallel(kclxx::record_handler(handle), policy);
    case form::completions:
      break;
  }
  return kclxx::parallel(
      [handle](kclxx::completion one, const shard_context& shard) {
        handle(one.record(), shard);
        one.complete();
      },
      policy);
}

/// Sees what is done about records that fail.
struct failures_seen final : kclxx::observer {
  void on_record_retried(const kclxx::observer::event_source&,
                         const kclxx::observer::record_retried&) override {
    ++count;
  }
  void on_record_skipped(const kclxx::observer::event_source&,
                         const kclxx::observer::record_skipped&) override {
    ++count;
  }
  void on_record_parked(const kclxx::observer::event_source&,
                        const kclxx::observer::record_parked&) override {
    ++count;
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
  auto options = prompt();
  options.observers = {seen};
  std::optional<test_daemon> daemon;
  daemon.emplace(make(which,
                      [&](const record& one, const shard_context& shard) {
                        if (one.data() != "x") return;
                        daemon->end_input();
                        CHECK_FALSE(shard.sleep_for(1s));
                        if (throws) throw std::runtime_error("cancelled");
                      },
                      {.max_attempts = attempts, .bad_record = what, .lot = lot}),
                 options);
  daemon->initialize().deliver({"ok"}).deliver({});
  daemon->deliver({"x"});
  if (!daemon->exit_status()) daemon->deliver({});  // parallel: between callbacks
  CHECK(daemon->exit_status() != kclxx::exit_status::callback_failed);
  CHECK(daemon->persisted() == sequence_position("1"));
  CHECK(lot->all.empty());
  CHECK(seen->count == 0);
}

TEST_CASE("a record whose handler returns after the session has failed is not checkpointed",
          "[processing][stop]") {
  const auto which = GENERATE(form::each, form::batches, form::parallel, form::completions);
  CAPTURE(which);
  test_daemon daemon(make(which,
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
  CHECK(daemon.exit_status() == kclxx::exit_status::callback_failed);
  CHECK(daemon.persisted() == sequence_position("1"));
}

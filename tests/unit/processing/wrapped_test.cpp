// SPDX-License-Identifier: Apache-2.0
// A processor of the user's that calls the functions of a form of processing.
#include <chrono>
#include <memory>
#include <utility>

#include "support/catch.hpp"
#include "unit/processing/processing_support.hpp"

namespace kclxx::test {

namespace {

using namespace std::chrono_literals;

/// Forwards the callbacks, and nothing else. It makes the inner processor at once, or in the first
/// callback.
class wrapper final : public record_processor {
 public:
  wrapper(processor_factory make, const shard_context& shard, bool is_lazy)
      : make_(std::move(make)), shard_(shard) {
    if (!is_lazy) static_cast<void>(inner());
  }
  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    inner().process_records(std::move(batch), checkpointer);
  }
  void lease_lost() override { inner().lease_lost(); }
  void shard_ended(const checkpointer& checkpointer) override { inner().shard_ended(checkpointer); }
  void shutdown_requested(const checkpointer& checkpointer) override {
    inner().shutdown_requested(checkpointer);
  }

 private:
  record_processor& inner() {
    if (!inner_) inner_ = make_(shard_);
    return *inner_;
  }

  processor_factory make_;
  const shard_context& shard_;
  std::unique_ptr<record_processor> inner_;
};

}  // namespace

TEST_CASE("a processor that calls a form's functions loses no record in a crash",
          "[processing][checkpoint]") {
  const bool is_lazy = GENERATE(false, true);
  const auto which = GENERATE(form::each, form::batches, form::parallel, form::completions);
  CAPTURE(is_lazy, static_cast<int>(which));
  strings processed;
  const auto process = [&](const record& record, const shard_context& shard) {
    if (shard.sleep_for(1s)) processed.emplace_back(record.data());
  };
  const processor_factory gathering = batches(
      [&](const record_batch& batch, const shard_context& shard) {
        for (const record& record : batch) process(record, shard);
      },
      {}, {.linger = 1min});
  const processor_factory inner = which == form::batches ? gathering : make(which, process);
  testing::worker daemon(
      [&](const shard_context& shard) { return std::make_unique<wrapper>(inner, shard, is_lazy); },
      prompt());
  daemon.initialize().deliver({"a", "b"}).deliver({"c"}).crash();
  const std::size_t before = processed.size();
  daemon.resume().end_shard();
  INFO(daemon);
  CHECK(before == (which == form::each ? 3 : 0));
  CHECK(processed == strings{"a", "b", "c"});
  CHECK(daemon.persisted() == sequence_position("SHARD_END"));
}

}  // namespace kclxx::test

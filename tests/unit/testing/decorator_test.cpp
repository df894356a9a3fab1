// SPDX-License-Identifier: Apache-2.0
// The public seam is enough for a policy: a decorator that halves a failing batch until the bad
// record is alone, whose inner processor's checkpoint() covers just its slice.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/detail/shard_service_wrapper.hpp>
#include <kclxx/kclxx.hpp>
#include <kclxx/testing/daemon.hpp>

#include "support/catch.hpp"

namespace {

using kclxx::checkpointer;
using kclxx::sequence_position;
using namespace std::chrono_literals;

/// "Everything" is what the inner processor was given.
class slice_service final : public kclxx::detail::shard_service_wrapper {
 public:
  slice_service(std::shared_ptr<kclxx::detail::shard_service> inner, sequence_position last)
      : shard_service_wrapper(std::move(inner)), last_(std::move(last)) {}

  void async_checkpoint(const std::optional<sequence_position>& position,
                        kclxx::checkpoint_handler handler) override {
    shard_service_wrapper::async_checkpoint(position.value_or(last_), std::move(handler));
  }
  std::error_code checkpoint(const std::optional<sequence_position>& position,
                             const std::optional<clock::time_point>& deadline) override {
    return shard_service_wrapper::checkpoint(position.value_or(last_), deadline);
  }

 private:
  sequence_position last_;
};

class bisecting final : public kclxx::record_processor {
 public:
  bisecting(const kclxx::shard_context& shard, std::unique_ptr<record_processor> inner,
            std::vector<std::string>& skipped)
      : shard_(shard), inner_(std::move(inner)), skipped_(skipped) {}

  void process_records(kclxx::record_batch batch, const checkpointer& whole) override {
    if (batch.empty()) return;
    const checkpointer slice(
        std::make_shared<slice_service>(whole.service(), batch.back().position()));
    for (int attempt = 1;; ++attempt) {
      try {
        return inner_->process_records(batch, slice);
      } catch (const std::runtime_error&) {
        if (batch.size() > 1) break;
        if (attempt == 3) {
          skipped_.emplace_back(batch[0].data());
          return;
        }
        if (!shard_.sleep_for(1s * attempt)) throw;
      }
    }
    const std::size_t half = batch.size() / 2;
    process_records(batch.slice(0, half), whole);
    process_records(batch.slice(half, batch.size()), whole);
  }

 private:
  const kclxx::shard_context& shard_;
  std::unique_ptr<record_processor> inner_;
  std::vector<std::string>& skipped_;
};

/// Fails on "bad", and checkpoints each batch that it was given, waiting.
class picky final : public kclxx::record_processor {
 public:
  void process_records(kclxx::record_batch batch, const checkpointer& with) override {
    if (std::any_of(batch.begin(), batch.end(),
                    [](const auto& record) { return record.data() == "bad"; })) {
      throw std::runtime_error("bad record");
    }
    with.checkpoint();
  }
};

}  // namespace

TEST_CASE("a decorator gives its inner processor checkpoints of a slice, in virtual time",
          "[testing][seam]") {
  std::vector<std::string> skipped;
  kclxx::run_options options;
  options.mode = kclxx::checkpoint_mode::manual;
  kclxx::testing::daemon daemon(
      [&](const kclxx::shard_context& shard) {
        return std::make_unique<bisecting>(shard, std::make_unique<picky>(), skipped);
      },
      options);
  daemon.initialize();
  const auto begin = daemon.now();
  daemon.deliver({"a", "b", "c", "d", "e", "bad", "g", "h"});
  INFO(daemon);
  CHECK(skipped == std::vector<std::string>{"bad"});
  CHECK(daemon.checkpoints() == std::vector<sequence_position>{sequence_position("4"),
                                                               sequence_position("5"),
                                                               sequence_position("8")});
  CHECK(daemon.now() - begin == 3s);
}

TEST_CASE("a decorator's sleep ends with the stop token, and its exception is the callback's",
          "[testing][seam]") {
  std::vector<std::string> skipped;
  kclxx::testing::daemon daemon([&](const kclxx::shard_context& shard) {
    return std::make_unique<bisecting>(shard, std::make_unique<picky>(), skipped);
  });
  daemon.initialize().end_input_in_next_callback();
  const auto begin = daemon.now();
  daemon.deliver({"bad"});
  CHECK(skipped.empty());
  CHECK(daemon.now() == begin);
  CHECK(daemon.exit_status() == kclxx::exit_status::daemon_gone);
}

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include <kclxx/processing/each.hpp>

#include "processing/failure_handling.hpp"

namespace kclxx {

namespace {

using processing::failure_decision;

/// Requests checkpoints during a long batch: about once a second, while the clock is read once for
/// up to 64 records.
class checkpoint_progress {
 public:
  checkpoint_progress(const shard_context& shard, const checkpointer& with)
      : shard_(shard), with_(with) {}

  /// This record of the batch is complete, and all before it.
  void on_complete(const record& last) {
    if (--left_ == 0) look(last);
  }

 private:
  using clock = shard_context::clock;

  void look(const record& last) {
    const auto now = shard_.now();
    const bool is_quick = now - looked_ < std::chrono::milliseconds(10);
    stride_ = is_quick ? std::min(2 * stride_, 64) : 1;
    left_ = stride_;
    looked_ = now;
    if (now - requested_ < std::chrono::seconds(1)) return;
    requested_ = now;
    with_.async_checkpoint(last);
  }

  const shard_context& shard_;
  const checkpointer& with_;
  clock::time_point looked_ = shard_.now();
  clock::time_point requested_ = looked_;
  int stride_ = 1;
  int left_ = 1;
};

class each_processor final : public record_processor {
 public:
  each_processor(const record_handler& handler, const failure_policy& policy,
                 const shard_context& shard)
      : shard_(shard), failures_(policy, shard), handler_(handler.make(shard)) {}

  void process_records(record_batch batch, const checkpointer& with) override {
    checkpoint_progress progress(shard_, with);
    std::size_t complete = 0;
    processing::failed_attempts attempts;  // of the first record that is not complete
    for (;;) {
      const std::exception_ptr thrown = run(batch, complete, attempts, progress);
      if (complete > 0) with.async_checkpoint(batch[complete - 1]);
      if (!thrown) return;
      const auto decision = failures_.on_failure(batch[complete], attempts, thrown);
      switch (decision.what) {
        case failure_decision::kind::retry:
          if (!shard_.sleep_for(decision.delay)) return;
          break;
        case failure_decision::kind::complete:
          ++complete;
          attempts = {};
          break;
        case failure_decision::kind::stop:
        case failure_decision::kind::lease_gone:
          std::rethrow_exception(thrown);
      }
    }
  }

 private:
  /// Runs the handler from the first record that is not complete to the end, a failure, or the stop
  /// token. Returns what it threw.
  std::exception_ptr run(const record_batch& batch, std::size_t& complete,
                         processing::failed_attempts& attempts, checkpoint_progress& progress) {
    const auto stop = shard_.stop_token();
    const std::size_t begin = complete;
    std::exception_ptr thrown;
    try {
      for (; complete < batch.size() && !stop.stop_requested(); ++complete) {
        const record& next = batch[complete];
        failures_.attempt(next, attempts, [&] { handler_(next, shard_); });
        if (attempts.count > 0) attempts = {};
        progress.on_complete(next);
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    failures_.on_success(complete - begin);
    return thrown;
  }

  const shard_context& shard_;
  processing::failure_handling failures_;
  record_handler::of_shard handler_;
};

}  // namespace

processor_factory each(record_handler handler, failure_policy policy) {
  return {[handler = std::move(handler), policy = std::move(policy)](const shard_context& shard) {
            return std::make_unique<each_processor>(handler, policy, shard);
          },
          checkpoint_mode::manual};
}

}  // namespace kclxx

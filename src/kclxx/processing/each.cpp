// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include <kclxx/processing/each.hpp>

#include "processing/failure_handling.hpp"
#include "processing/progress.hpp"

namespace kclxx {

namespace {

using processing::failure_decision;

class each_processor final : public record_processor {
 public:
  each_processor(const record_handler& handler, const failure_policy& policy,
                 const shard_context& shard)
      : shard_(shard), failures_(policy, shard), handler_(handler.make(shard)) {}

  void process_records(record_batch batch, const checkpointer& with) override {
    processing::progress progress(shard_, with);
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
                         processing::failed_attempts& attempts, processing::progress& progress) {
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

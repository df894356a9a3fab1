// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <stop_token>
#include <utility>

#include <kclxx/processing/each.hpp>

#include "processing/failure_handling.hpp"

namespace kclxx {

namespace {

/// Requests checkpoints during a long batch, about once a second. It reads the clock once for up to
/// 64 records.
class checkpoint_progress {
 public:
  checkpoint_progress(const shard_context& shard, const checkpointer& checkpointer)
      : shard_(shard), checkpointer_(checkpointer) {}

  /// This record of the batch is complete, and so are all before it.
  void on_complete(const record& last) {
    if (--records_until_reading_ == 0) read_clock(last);
  }

 private:
  using clock = shard_context::clock;

  void read_clock(const record& last) {
    const auto now = shard_.now();
    const bool is_quick = now - last_reading_ < std::chrono::milliseconds(10);
    records_per_reading_ = is_quick ? std::min(2 * records_per_reading_, 64) : 1;
    records_until_reading_ = records_per_reading_;
    last_reading_ = now;
    if (now - last_request_ < std::chrono::seconds(1)) return;
    last_request_ = now;
    checkpointer_.async_checkpoint(last);
  }

  const shard_context& shard_;
  const checkpointer& checkpointer_;
  clock::time_point last_reading_ = shard_.now();
  clock::time_point last_request_ = last_reading_;
  int records_per_reading_ = 1;
  int records_until_reading_ = 1;
};

class each_processor final : public record_processor {
 public:
  each_processor(const record_handler& handler, const failure_policy& policy,
                 const shard_context& shard)
      : shard_(shard), failures_(policy, shard_), handler_(handler.make(shard_)) {}

  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    checkpoint_progress progress(shard_, checkpointer);
    processing::failed_attempts attempts;  // of the first record that is not complete
    std::size_t complete = 0;              // so many records are
    const auto request = [&] {
      if (complete > 0) checkpointer.async_checkpoint(batch[complete - 1]);
    };
    const auto stop = shard_.stop_token();
    // A handler that returns or throws after a stop has neither completed its record nor failed.
    while (const auto thrown = run(batch, complete, attempts, stop, progress)) {
      request();
      if (stop.stop_requested()) break;  // the daemon's answer to the request has told it
      const auto verdict = failures_.decide(batch[complete], attempts, thrown);
      if (!failures_.is_complete_after(verdict)) continue;
      ++complete;
      attempts = {};
      request();
    }
    request();
  }

 private:
  /// Calls the handler for the records that are not complete, until a stop is requested. When the
  /// handler throws, this returns the exception. There is one try block for all records, since an
  /// exception_ptr for each record would cost.
  std::exception_ptr run(const record_batch& batch, std::size_t& complete,
                         processing::failed_attempts& attempts, const std::stop_token& stop,
                         checkpoint_progress& progress) {
    bool is_in_handler = false;
    try {
      for (const std::size_t end = batch.size(); complete < end && !stop.stop_requested();) {
        const record& record = batch[complete];
        is_in_handler = true;
        failures_.attempt(record, attempts, [&] { handler_(record, shard_); });
        is_in_handler = false;
        if (stop.stop_requested()) break;
        failures_.on_success();
        if (attempts.count > 0) {
          failures_.on_retry_success(record.position(), attempts.count + 1);
          attempts = {};
        }
        ++complete;
        progress.on_complete(record);
      }
      return nullptr;
    } catch (...) {
      if (!is_in_handler) throw;
      return stop.stop_requested() ? nullptr : std::current_exception();
    }
  }

  const shard_context& shard_;
  processing::failure_handling failures_;
  record_handler::of_shard handler_;
};

}  // namespace

processor_factory each(record_handler handler, failure_policy policy) {
  return processor_factory::valid_or_not([&]() -> processor_factory {
    detail::require_function(handler);
    return [handler = std::move(handler),
            policy = processing::checked(std::move(policy))](const shard_context& shard) {
      return std::make_unique<each_processor>(handler, policy, shard);
    };
  });
}

}  // namespace kclxx

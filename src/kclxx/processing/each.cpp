// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include <kclxx/processing/each.hpp>

#include "io/forked_copy.hpp"
#include "processing/clamped_checkpoints.hpp"
#include "processing/failure_handling.hpp"

namespace kclxx {

namespace {

/// Requests checkpoints during a long batch: about once a second, while the clock is read once for
/// up to 64 records.
class checkpoint_progress {
 public:
  checkpoint_progress(const shard_context& shard, const checkpointer& checkpointer)
      : shard_(shard), checkpointer_(checkpointer) {}

  /// This record of the batch is complete, and all before it.
  void on_complete(const record& last) {
    if (--left_ == 0) read_clock(last);
  }

 private:
  using clock = shard_context::clock;

  void read_clock(const record& last) {
    const auto now = shard_.now();
    const bool is_quick = now - looked_ < std::chrono::milliseconds(10);
    stride_ = is_quick ? std::min(2 * stride_, 64) : 1;
    left_ = stride_;
    looked_ = now;
    if (now - requested_ < std::chrono::seconds(1)) return;
    requested_ = now;
    checkpointer_.async_checkpoint(last);
  }

  const shard_context& shard_;
  const checkpointer& checkpointer_;
  clock::time_point looked_ = shard_.now();
  clock::time_point requested_ = looked_;
  int stride_ = 1;
  int left_ = 1;
};

/// How many records of a batch are complete. What requests checkpoints asks it, on any thread, and
/// may outlive the processor. One thread calls begin, set and end.
class complete_records {
 public:
  void begin(const record_batch& batch) {
    const std::lock_guard lock(mutex_);
    batch_ = batch;
    count_.store(0, std::memory_order_relaxed);
  }
  void end() { begin({}); }
  [[nodiscard]] std::size_t count() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }
  /// Without a lock, since it is called for each record.
  void set(std::size_t count) noexcept { count_.store(count, std::memory_order_relaxed); }
  [[nodiscard]] std::optional<sequence_position> position() {
    const std::lock_guard lock(mutex_);
    const std::size_t count = this->count();
    return count > 0 ? std::optional(batch_[count - 1].position()) : std::nullopt;
  }

 private:
  std::mutex mutex_;
  record_batch batch_;
  std::atomic<std::size_t> count_ = 0;
};

class each_processor final : public record_processor {
 public:
  each_processor(const record_handler& handler, const failure_policy& policy,
                 const shard_context& shard)
      : clamped_(shard),
        shard_(*clamped_.context),
        failures_(policy, shard_),
        handler_(handler.make(shard_)) {
    clamped_.checkpoints->ask([complete = complete_] { return complete->position(); });
  }
  ~each_processor() override {
    clamped_.checkpoints->end();
    complete_->end();
  }

  void process_records(record_batch batch, const checkpointer& checkpointer) override {
    clamped_.checkpoints->set_open(true);
    checkpoint_progress progress(shard_, checkpointer);
    processing::failed_attempts attempts;  // of the first record that is not complete
    complete_records& complete = *complete_;
    complete.begin(batch);
    const auto request = [&](bool is_open_complete) {
      const auto position = complete.position();
      if (!position) return;
      checkpointer.async_checkpoint(*position);
      clamped_.checkpoints->pass(*position, is_open_complete);
    };
    const auto stop = shard_.stop_token();
    // What returns or throws after a stop is neither complete nor failed.
    while (auto thrown = run(batch, complete, attempts, stop, progress)) {
      request(false);
      if (stop.stop_requested()) break;  // with the answer
      const record& failed = batch[complete.count()];
      if (!failures_.is_complete_after(failed, attempts, std::move(thrown))) continue;
      complete.set(complete.count() + 1);
      attempts = {};
      request(true);
    }
    request(true);
    clamped_.checkpoints->set_open(false);
    complete.end();
  }
  void lease_lost() override { clamped_.checkpoints->release(); }

 private:
  /// From the first record that is not complete on, until a stop is requested, or the
  /// handler throws: returns what. One block for all records, since an exception_ptr for each would
  /// cost.
  std::exception_ptr run(const record_batch& batch, complete_records& complete,
                         processing::failed_attempts& attempts, const std::stop_token& stop,
                         checkpoint_progress& progress) {
    bool is_in_handler = false;
    try {
      std::size_t place = complete.count();
      for (const std::size_t end = batch.size(); place < end && !stop.stop_requested();) {
        const record& record = batch[place];
        is_in_handler = true;
        failures_.attempt(record, attempts, [&] { handler_(record, shard_); });
        is_in_handler = false;
        forked_.leave_if_copy(shard_.shard_id());
        if (stop.stop_requested()) break;
        failures_.on_success();
        if (attempts.count > 0) {
          failures_.on_retry_success(record.position(), attempts.count + 1);
          attempts = {};
        }
        complete.set(++place);
        if (clamped_.checkpoints->is_awaited()) clamped_.checkpoints->pass(record.position());
        progress.on_complete(record);
      }
      return nullptr;
    } catch (...) {
      if (!is_in_handler) throw;
      forked_.leave_if_copy(shard_.shard_id());
      return stop.stop_requested() ? nullptr : std::current_exception();
    }
  }

  const processing::clamped_context clamped_;
  const shard_context& shard_;
  processing::failure_handling failures_;
  const io::forked_copy forked_;
  const std::shared_ptr<complete_records> complete_ = std::make_shared<complete_records>();
  record_handler::of_shard handler_;
};

}  // namespace

processor_factory each(record_handler handler, failure_policy policy) {
  return {[handler = std::move(handler),
           policy = processing::checked(std::move(policy))](const shard_context& shard) {
            return std::make_unique<each_processor>(handler, policy, shard);
          },
          checkpoint_mode::manual};
}

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <kclxx/processing/batches.hpp>

#include "io/forked_copy.hpp"
#include "processing/clamped_checkpoints.hpp"
#include "processing/failure_handling.hpp"

namespace kclxx {

namespace {

/// What a handler threw: the failure itself, and where it is, if it reported that.
struct batch_error {
  std::exception_ptr cause;
  std::optional<sequence_position> position{};
};

batch_error current_error() {
  try {
    throw;
  } catch (const batch_failure& error) {
    return {error.cause() ? error.cause() : std::current_exception(), error.position()};
  } catch (...) {
    return {std::current_exception()};
  }
}

/// The first record at or after the position; std::nullopt when that is not within the batch.
std::optional<std::size_t> index_of(const std::optional<sequence_position>& position,
                                    const record_batch& batch) {
  if (!position || *position < batch.front().position() || *position > batch.back().position()) {
    return std::nullopt;
  }
  const auto found = std::partition_point(
      batch.begin(), batch.end(), [&](const record& one) { return one.position() < *position; });
  return static_cast<std::size_t>(found - batch.begin());
}

/// The records of a batch that are not complete.
class rest_of_batch {
 public:
  explicit rest_of_batch(record_batch batch) : records_(std::move(batch)) {}

  [[nodiscard]] bool empty() const noexcept { return records_.empty(); }
  [[nodiscard]] const record& front() const noexcept { return records_.front(); }
  [[nodiscard]] const record& at(std::size_t place) const noexcept { return records_[place]; }
  /// What to try next: all, or while a failing record is searched for, half of those that it is
  /// among.
  [[nodiscard]] record_batch next() const {
    if (suspects_ == 0) return records_;
    return records_.slice(0, std::max<std::size_t>(suspects_ / 2, 1));
  }
  /// One of the first `count` records fails.
  void narrow(std::size_t count) noexcept { suspects_ = count; }
  void complete(std::size_t count) {
    attempts_ = {};
    suspects_ -= std::min(count, suspects_);
    records_ = records_.slice(count, records_.size());
  }
  /// Of the first record.
  [[nodiscard]] processing::failed_attempts& attempts() noexcept { return attempts_; }

 private:
  record_batch records_;
  std::size_t suspects_ = 0;
  processing::failed_attempts attempts_;
};

class batches_processor final : public record_processor {
 public:
  batches_processor(const batch_handler& handler, const failure_policy& policy,
                    const shard_context& shard)
      : clamped_(shard),
        shard_(clamped_.context),
        failures_(policy, shard_),
        handler_(handler.make(shard_)) {}
  ~batches_processor() override { clamped_.checkpoints->end(); }

  void process_records(record_batch batch, const checkpointer& with) override {
    clamped_.checkpoints->set_open(true);
    rest_of_batch rest(std::move(batch));
    const auto complete = [&](std::size_t count) {
      const sequence_position last = rest.at(count - 1).position();
      with.async_checkpoint(last);
      clamped_.checkpoints->pass(last);
      rest.complete(count);
    };
    const auto stop = shard_.stop_token();
    while (!rest.empty() && !stop.stop_requested()) {
      const record_batch part = rest.next();
      auto error = run(part, rest.attempts());
      forked_.leave_if_copy(shard_.shard_id());
      // What returns or throws after a stop is neither complete nor failed.
      if (stop.stop_requested()) break;
      const auto succeeded = error ? index_of(error->position, part) : part.size();
      if (succeeded && *succeeded > 0) {
        failures_.on_success();
        const int failed = rest.attempts().count;
        if (failed > 0) failures_.on_retry_success(part.front().position(), failed + 1);
        complete(*succeeded);
      }
      if (!error || stop.stop_requested()) continue;
      rest.narrow(succeeded ? 0 : part.size());
      if (processing::is_lease_gone(error->cause)) std::rethrow_exception(error->cause);
      const bool is_alone = succeeded.has_value() || part.size() == 1;
      if (is_alone &&
          failures_.is_complete_after(rest.front(), rest.attempts(), std::move(error->cause))) {
        complete(1);
      }
    }
    clamped_.checkpoints->set_open(false);
  }
  void lease_lost() override { clamped_.checkpoints->release(); }

 private:
  std::optional<batch_error> run(const record_batch& part,
                                 const processing::failed_attempts& attempts) {
    try {
      const long handles = part.owner().use_count();
      failures_.attempt(part.front(), attempts, [&] { handler_(part, shard_); });
      if (part.owner().use_count() > handles) warn_of_kept_batch();
      return std::nullopt;
    } catch (...) {
      return current_error();
    }
  }

  void warn_of_kept_batch() {
    if (std::exchange(has_warned_of_kept_batch_, true)) return;
    shard_.log(log_level::warning,
               "the handler returned but a copy of its record_batch is still in use; its records "
               "count as complete already. If they are still being processed, use a "
               "record_processor in checkpoint_mode::manual. Logged once.");
  }

  const processing::clamped_context clamped_;
  const shard_context& shard_;
  processing::failure_handling failures_;
  const io::forked_copy forked_;
  batch_handler::of_shard handler_;
  bool has_warned_of_kept_batch_ = false;
};

}  // namespace

processor_factory batches(batch_handler handler, failure_policy policy) {
  return {[handler = std::move(handler),
           policy = processing::checked(std::move(policy))](const shard_context& shard) {
            return std::make_unique<batches_processor>(handler, policy, shard);
          },
          checkpoint_mode::manual};
}

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include <kclxx/processing/batches.hpp>

#include "processing/failure_handling.hpp"

namespace kclxx {

namespace {

using processing::failure_decision;

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
      : shard_(shard), failures_(policy, shard), handler_(handler.make(shard)) {}

  void process_records(record_batch batch, const checkpointer& with) override {
    rest_of_batch rest(std::move(batch));
    const auto stop = shard_.stop_token();
    while (!rest.empty() && !stop.stop_requested()) {
      const record_batch part = rest.next();
      const auto error = run(part, rest.attempts());
      const auto succeeded = error ? index_of(error->position, part) : part.size();
      if (succeeded && *succeeded > 0) {
        with.async_checkpoint(part[*succeeded - 1]);
        failures_.on_success(*succeeded);
        rest.complete(*succeeded);
      }
      if (!error) continue;
      rest.narrow(succeeded ? 0 : part.size());
      if (processing::is_lease_gone(error->cause)) std::rethrow_exception(error->cause);
      const bool is_alone = succeeded.has_value() || part.size() == 1;
      if (is_alone && !handle_failure(rest, error->cause, with)) return;
    }
  }

 private:
  std::optional<batch_error> run(const record_batch& part,
                                 const processing::failed_attempts& attempts) {
    try {
      failures_.attempt(part.front(), attempts, [&] { handler_(part, shard_); });
      return std::nullopt;
    } catch (...) {
      return current_error();
    }
  }

  /// The first record of the rest failed. False when the shard ends meanwhile.
  bool handle_failure(rest_of_batch& rest, const std::exception_ptr& thrown,
                      const checkpointer& with) {
    const auto decision = failures_.on_failure(rest.front(), rest.attempts(), thrown);
    switch (decision.what) {
      case failure_decision::kind::retry:
        return shard_.sleep_for(decision.delay);
      case failure_decision::kind::complete:
        with.async_checkpoint(rest.front());
        rest.complete(1);
        return true;
      case failure_decision::kind::stop:
      case failure_decision::kind::lease_gone:
        break;
    }
    std::rethrow_exception(thrown);
  }

  const shard_context& shard_;
  processing::failure_handling failures_;
  batch_handler::of_shard handler_;
};

}  // namespace

processor_factory batches(batch_handler handler, failure_policy policy) {
  return {[handler = std::move(handler), policy = std::move(policy)](const shard_context& shard) {
            return std::make_unique<batches_processor>(handler, policy, shard);
          },
          checkpoint_mode::manual};
}

}  // namespace kclxx

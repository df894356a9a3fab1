// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include <kclxx/detail/shard_service_wrapper.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::processing {

/// The service of handlers: what they request never covers a record that is not complete.
///
/// async_checkpoint is passed on once all records up to its target are complete. Without a target
/// it means what is complete; in a handler of `each` or `batches` also what the handler has now.
/// checkpoint() means what is complete; with a later target it fails with errc::not_allowed_here.
///
/// Thread safety: all functions from any thread.
class clamped_checkpoints final : public detail::shard_service_wrapper {
 public:
  using shard_service_wrapper::shard_service_wrapper;

  /// What is asked for the watermark at each request; without it pass() tells all. Call it first.
  void ask(std::function<std::optional<sequence_position>()> watermark) {
    ask_ = std::move(watermark);
  }
  /// All records up to here are complete. A lower position than before changes nothing.
  /// `is_open_complete`: so is what the open handler got. Requests without a target wait for that.
  void pass(const sequence_position& watermark, bool is_open_complete = true);
  /// Whether pass() would be of use at once. Costs a load.
  [[nodiscard]] bool is_awaited() const noexcept {
    return is_awaited_.load(std::memory_order_seq_cst);
  }
  /// Records are being processed one after the other, and pass() follows; or no longer.
  void set_open(bool is_open);
  /// The lease is lost: the session refuses what waits, and what follows.
  void release();
  /// In the processor's destructor, before it destroys user code: no record becomes complete any
  /// more. Calls the handlers that wait.
  void end() noexcept;

  void async_checkpoint(const std::optional<sequence_position>& position,
                        checkpoint_handler handler) override;
  std::error_code checkpoint(const std::optional<sequence_position>& position,
                             const std::optional<clock::time_point>& deadline) override;

 private:
  // By target: a record that fails for long keeps those of the whole window waiting.
  using requests = std::multimap<sequence_position, checkpoint_handler>;

  /// What is complete now.
  std::optional<sequence_position> watermark();
  /// Sends what is covered after a change, which is made with the mutex held.
  template <class Change>
  void send_after(Change change);

  std::function<std::optional<sequence_position>()> ask_;
  std::mutex mutex_;  // not held while the service is called or a handler is destroyed
  std::optional<sequence_position> watermark_;
  requests waiting_;
  requests of_open_record_;  // without a target, which pass() decides
  bool is_open_ = false;
  bool is_released_ = false;
  std::atomic<bool> is_awaited_ = false;
};

/// The context of handlers, with clamped checkpoints. Lifetime: `shard` outlives it.
struct clamped_context {
  explicit clamped_context(const shard_context& shard)
      : checkpoints(std::make_shared<clamped_checkpoints>(detail::service_access::of(shard))),
        context(detail::service_access::with(shard, checkpoints)) {}

  const std::shared_ptr<clamped_checkpoints> checkpoints;
  const std::unique_ptr<const shard_context> context;
};

}  // namespace kclxx::processing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <kclxx/export.hpp>
#include <kclxx/shard_service.hpp>

namespace kclxx {

/// A service for decorators: passes everything on to another service. Override what differs. The
/// following one lets an inner processor checkpoint the part of a batch that it was given:
///
///     class part_of_batch final : public kclxx::shard_service_wrapper {
///      public:
///       part_of_batch(std::shared_ptr<kclxx::shard_service> inner, kclxx::sequence_position last)
///           : shard_service_wrapper(std::move(inner)), last_(std::move(last)) {}
///       void async_checkpoint(const std::optional<kclxx::sequence_position>& position,
///                             kclxx::checkpoint_handler handler) override {
///         shard_service_wrapper::async_checkpoint(position.value_or(last_), std::move(handler));
///       }
///       // and checkpoint() likewise
///     };
///
/// 1. Get the service from checkpointer::service() or shard_context::service().
/// 2. Give the inner processor a checkpointer, or a shard_context, that is made with the wrapper.
///    shard_context::to_fields has the other fields of the context.
/// 3. Override functions that belong together: async_checkpoint and checkpoint; or now, date,
///    sleep_until, start_timer and wait_until_notified, which must all use the same clock.
///
/// Errors: those of the inner service.
/// Thread safety: as the inner service.
/// Lifetime: it shares ownership of the inner service.
/// Blocking: as the inner service.
class KCLXX_EXPORT shard_service_wrapper : public shard_service {
 public:
  /// Precondition: `inner` is not null.
  explicit shard_service_wrapper(std::shared_ptr<shard_service> inner) noexcept
      : inner_(std::move(inner)) {}
  ~shard_service_wrapper() override;

  void async_checkpoint(const std::optional<sequence_position>& position,
                        checkpoint_handler handler) override {
    inner_->async_checkpoint(position, std::move(handler));
  }
  std::error_code checkpoint(const std::optional<sequence_position>& position,
                             const std::optional<clock::time_point>& deadline) override {
    return inner_->checkpoint(position, deadline);
  }
  [[nodiscard]] clock::time_point now() const override { return inner_->now(); }
  [[nodiscard]] std::chrono::system_clock::time_point date() const override {
    return inner_->date();
  }
  bool sleep_until(clock::time_point deadline) override { return inner_->sleep_until(deadline); }
  timer_id start_timer(std::chrono::milliseconds delay, std::chrono::milliseconds period,
                       std::function<void()> function) override {
    return inner_->start_timer(delay, period, std::move(function));
  }
  void cancel_timer(timer_id timer) override { inner_->cancel_timer(timer); }
  void wait_until_notified(clock::time_point deadline) override {
    inner_->wait_until_notified(deadline);
  }
  void notify() override { inner_->notify(); }
  [[nodiscard]] std::unique_ptr<thread_pool> make_thread_pool(std::size_t threads) override {
    return inner_->make_thread_pool(threads);
  }
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>& position) override {
    inner_->log(level, text, position);
  }
  void observe(shard_event event) noexcept override { inner_->observe(std::move(event)); }
  [[nodiscard]] bool is_observed() const noexcept override { return inner_->is_observed(); }

 private:
  std::shared_ptr<shard_service> inner_;
};

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <kclxx/detail/export.hpp>
#include <kclxx/detail/shard_service.hpp>

namespace kclxx::detail {

/// Passes everything on to another service; a decorator overrides what differs. Functions that
/// belong together are overridden together: async_checkpoint and checkpoint; or now, date,
/// sleep_until, start_timer and wait_until_notified, which must all use the same clock.
///
/// Lifetime: it shares ownership of the inner service.
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
  [[nodiscard]] bool is_virtual() const noexcept override { return inner_->is_virtual(); }
  [[nodiscard]] std::uint32_t seed() const noexcept override { return inner_->seed(); }
  void adopt_executor(virtual_executor& one) override { inner_->adopt_executor(one); }
  void release_executor(virtual_executor& one) noexcept override { inner_->release_executor(one); }
  bool wait_at_end(const std::function<bool()>& is_over) override {
    return inner_->wait_at_end(is_over);
  }
  void track_completion() noexcept override { inner_->track_completion(); }
  void fail(std::exception_ptr thrown) override { inner_->fail(std::move(thrown)); }
  void request_worker_stop() override { inner_->request_worker_stop(); }
  void log(log_level level, const std::string& text,
           const std::optional<sequence_position>& position) override {
    inner_->log(level, text, position);
  }
  void observe(observer::shard_event event) noexcept override { inner_->observe(std::move(event)); }
  [[nodiscard]] bool is_observed() const noexcept override { return inner_->is_observed(); }

 private:
  std::shared_ptr<shard_service> inner_;
};

}  // namespace kclxx::detail

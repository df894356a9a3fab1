// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <stdexcept>

#include <kclxx/detail/shard_service_wrapper.hpp>
#include <kclxx/shard_context.hpp>

#include "base/duration.hpp"
#include "base/notification.hpp"
#include "base/real_thread_pool.hpp"
#include "base/stoppable_sleep.hpp"
#include "base/thrown.hpp"

namespace kclxx {

detail::thread_pool::~thread_pool() = default;
detail::shard_service::~shard_service() = default;
detail::virtual_executor::~virtual_executor() = default;
void detail::shard_service::observe(observer::shard_event) noexcept {}
bool detail::shard_service::is_observed() const noexcept { return false; }
void detail::shard_service::request_worker_stop() {
  log(log_level::warning, "the worker is not asked to stop: no daemon runs this program");
}
detail::shard_service_wrapper::~shard_service_wrapper() = default;

std::chrono::system_clock::time_point detail::shard_service::date() const {
  return std::chrono::system_clock::now();
}

namespace {

/// Of a context without a session, which a test made.
class no_session final : public detail::shard_service {
 public:
  explicit no_session(std::stop_token stop) : stop_(std::move(stop)) {}

  void async_checkpoint(const std::optional<sequence_position>&,
                        checkpoint_handler handler) override {
    if (handler) handler(errc::daemon_gone);
  }
  std::error_code checkpoint(const std::optional<sequence_position>&,
                             const std::optional<clock::time_point>&) override {
    return errc::daemon_gone;
  }
  [[nodiscard]] clock::time_point now() const override { return clock::now(); }
  bool sleep_until(clock::time_point deadline) override {
    return detail::sleep_until(deadline, stop_);
  }
  timer_id start_timer(std::chrono::milliseconds, std::chrono::milliseconds,
                       std::function<void()>) override {
    throw std::logic_error("a shard_context without a session has no timers");
  }
  void cancel_timer(timer_id) override {}
  void wait_until_notified(clock::time_point deadline) override {
    notification_.wait_until(deadline, stop_);
  }
  void notify() override { notification_.notify(); }
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_thread_pool(
      std::size_t threads) override {
    return std::make_unique<detail::real_thread_pool>(threads);
  }
  void fail(std::exception_ptr thrown) override {
    log(log_level::error, "the shard's processing failed: " + detail::message_of(thrown), {});
  }
  void log(log_level, const std::string& text, const std::optional<sequence_position>&) override {
    std::fprintf(stderr, "kclxx: %s\n", text.c_str());
  }

 private:
  std::stop_token stop_;
  detail::notification notification_;
};

}  // namespace

shard_context::shard_context(fields values)
    : fields_(std::move(values)), service_(std::make_shared<no_session>(fields_.stop_token)) {}

shard_context::timer_id shard_context::after(std::chrono::milliseconds delay,
                                             std::function<void()> function) const {
  return service_->start_timer(detail::clamped(delay), std::chrono::milliseconds(0),
                               std::move(function));
}

shard_context::timer_id shard_context::every(std::chrono::milliseconds period,
                                             std::function<void()> function) const {
  if (period < std::chrono::milliseconds(1)) {
    throw std::logic_error("the period of a timer is at least 1 ms");
  }
  return service_->start_timer(detail::clamped(period), detail::clamped(period),
                               std::move(function));
}

void shard_context::fail(std::exception_ptr thrown) const {
  if (!thrown) throw std::invalid_argument("shard_context::fail needs an exception");
  service_->fail(std::move(thrown));
}

}  // namespace kclxx

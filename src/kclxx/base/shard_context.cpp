// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include <kclxx/checkpointer.hpp>
#include <kclxx/detail/export.hpp>
#include <kclxx/detail/shard_service.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/shard_context.hpp>

#include "base/duration.hpp"

namespace kclxx {

// How the library is compiled: a program that is compiled otherwise refers to other names.
constexpr char detail::KCLXX_DETAIL_CONTAINERS = 0;
constexpr char detail::KCLXX_DETAIL_STRINGS = 0;

observer::~observer() = default;
detail::thread_pool::~thread_pool() = default;
detail::shard_service::~shard_service() = default;
detail::virtual_scheduler::~virtual_scheduler() = default;
detail::virtual_scheduler* detail::shard_service::scheduler() noexcept { return nullptr; }
void detail::shard_service::observe(observer::shard_event) noexcept {}
bool detail::shard_service::is_observed() const noexcept { return false; }
void detail::shard_service::request_worker_stop() {
  log(log_level::warning, "the worker is not asked to stop: no daemon runs this program");
}

std::chrono::system_clock::time_point detail::shard_service::date() const {
  return std::chrono::system_clock::now();
}

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

namespace {

void throw_if(std::error_code ec) {
  if (ec) throw checkpoint_error(ec);
}

}  // namespace

void checkpointer::checkpoint(const checkpoint_target& target) const {
  throw_if(service_->checkpoint(target.position(), std::nullopt));
}

void checkpointer::checkpoint(const checkpoint_target& target, std::error_code& ec) const {
  ec = service_->checkpoint(target.position(), std::nullopt);
}

void checkpointer::checkpoint_until(const checkpoint_target& target,
                                    clock::time_point deadline) const {
  throw_if(service_->checkpoint(target.position(), deadline));
}

void checkpointer::checkpoint_until(const checkpoint_target& target, clock::time_point deadline,
                                    std::error_code& ec) const {
  ec = service_->checkpoint(target.position(), deadline);
}

void checkpointer::async_checkpoint(const checkpoint_target& target,
                                    std::function<void(std::error_code)> handler) const {
  service_->async_checkpoint(target.position(), std::move(handler));
}

checkpoint_mode record_processor::mode() const { return checkpoint_mode::automatic; }
void record_processor::lease_lost() {}
void record_processor::shard_ended(const checkpointer&) {}
void record_processor::shutdown_requested(const checkpointer&) {}

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <kclxx/shard_context.hpp>

namespace kclxx::test {

/// The service of a shard that has a name and the machine's clock, and no session.
class lone_service final : public detail::shard_service {
 public:
  void async_checkpoint(const std::optional<sequence_position>&, checkpoint_handler) override {
    throw_no_session();
  }
  std::error_code checkpoint(const std::optional<sequence_position>&,
                             const std::optional<clock::time_point>&) override {
    throw_no_session();
  }
  [[nodiscard]] clock::time_point now() const override { return clock::now(); }
  bool sleep_until(clock::time_point deadline) override {
    std::this_thread::sleep_until(deadline);
    return true;
  }
  timer_id start_timer(std::chrono::milliseconds, std::chrono::milliseconds,
                       std::function<void()>) override {
    throw_no_session();
  }
  void cancel_timer(timer_id) override { throw_no_session(); }
  void wait_until_notified(clock::time_point) override { throw_no_session(); }
  void notify() override {}
  [[nodiscard]] std::unique_ptr<detail::thread_pool> make_thread_pool(std::size_t) override {
    throw_no_session();
  }
  void fail(std::exception_ptr) override { throw_no_session(); }
  void log(log_level, const std::string&, const std::optional<sequence_position>&) override {}

 private:
  [[noreturn]] static void throw_no_session() { throw std::logic_error("there is no session"); }
};

/// A context with that service.
class lone_shard {
 public:
  explicit lone_shard(std::string id)
      : context_(detail::service_access::make<shard_context>({.shard_id = std::move(id)},
                                                             std::make_shared<lone_service>())) {}
  operator const shard_context&() const { return *context_; }  // NOLINT(google-explicit-*)

 private:
  std::unique_ptr<shard_context> context_;
};

}  // namespace kclxx::test

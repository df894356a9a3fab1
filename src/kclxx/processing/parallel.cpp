// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include <kclxx/processing/parallel.hpp>

#include "base/duration.hpp"
#include "processing/dispatcher.hpp"
#include "processing/failure_handling.hpp"

namespace kclxx {

namespace {

class parallel_processor final : public record_processor {
 public:
  explicit parallel_processor(std::shared_ptr<processing::dispatcher> dispatcher)
      : dispatcher_(std::move(dispatcher)) {}
  ~parallel_processor() override { dispatcher_->join(); }

  void process_records(record_batch batch, const checkpointer&) override {
    dispatcher_->process(batch);
  }
  void lease_lost() override { dispatcher_->stop(); }
  void shard_ended(const checkpointer&) override { dispatcher_->finish_shard(); }
  void shutdown_requested(const checkpointer&) override { dispatcher_->drain(); }

 private:
  std::shared_ptr<processing::dispatcher> dispatcher_;
};

parallel_options valid(parallel_options options) {
  const auto require = [](bool holds, const char* problem) {
    if (!holds) throw std::invalid_argument(std::string("parallel_options: ") + problem);
  };
  require(options.lanes > 0, "lanes is 0");
  require(options.window_records > 0, "window_records is 0");
  require(options.window_bytes > 0, "window_bytes is 0");
  require(options.stuck_after >= std::chrono::milliseconds(0), "stuck_after is negative");
  require(options.drain_timeout >= std::chrono::milliseconds(0), "drain_timeout is negative");
  require(!options.key || options.order == order::key, "a key has no effect with order::none");
  options.stuck_after = detail::clamped(options.stuck_after);
  options.drain_timeout = detail::clamped(options.drain_timeout);
  return options;
}

template <class Handler>
processor_factory make(Handler handler, failure_policy policy, parallel_options options,
                       std::function<void()> check_wait = {}) {
  return processor_factory::valid_or_not([&]() -> processor_factory {
    detail::require_function(handler);
    return [handler = std::move(handler), policy = processing::checked(std::move(policy)),
            options = valid(std::move(options)),
            check_wait = std::move(check_wait)](const shard_context& shard) {
      return std::make_unique<parallel_processor>(
          std::make_shared<processing::dispatcher>(policy, options, shard, handler, check_wait));
    };
  });
}

std::exception_ptr error(const char* text) {
  return std::make_exception_ptr(std::runtime_error(text));
}

}  // namespace

processor_factory parallel(record_handler handler, failure_policy policy,
                           parallel_options options) {
  return make(std::move(handler), std::move(policy), std::move(options));
}

processor_factory parallel(async_record_handler handler, failure_policy policy,
                           parallel_options options) {
  return make(std::move(handler), std::move(policy), std::move(options));
}

processor_factory detail::parallel_with_check(async_record_handler handler, failure_policy policy,
                                              parallel_options options,
                                              std::function<void()> check_wait) {
  return make(std::move(handler), std::move(policy), std::move(options), std::move(check_wait));
}

completion::completion() noexcept = default;
completion::completion(std::unique_ptr<detail::taken_record> taken) noexcept
    : taken_(std::move(taken)) {}
completion::completion(completion&&) noexcept = default;

completion& completion::operator=(completion&& source) noexcept {
  if (this == &source) return *this;
  if (taken_) fail(error("the completion was overwritten before it was reported"));
  taken_ = std::move(source.taken_);
  return *this;
}

completion::~completion() {
  if (taken_) fail(error("the completion was destroyed before it was reported"));
}

const record& completion::record() const noexcept { return taken_->record; }
int completion::attempt() const noexcept { return taken_->id.attempt; }

void completion::complete() noexcept {
  const auto taken = std::exchange(taken_, nullptr);
  if (const auto alive = taken ? taken->owner.lock() : nullptr) alive->complete(taken->id);
}

void completion::fail(std::exception_ptr cause) noexcept {
  const auto taken = std::exchange(taken_, nullptr);
  const auto alive = taken ? taken->owner.lock() : nullptr;
  if (!alive) return;
  alive->fail(taken->id, cause ? std::move(cause)
                               : error("the handler reported a failure without an exception"));
}

void completion::fail(std::string_view message) noexcept {
  fail(error(std::string(message).c_str()));
}

void completion::touch() noexcept {
  if (const auto alive = taken_ ? taken_->owner.lock() : nullptr) alive->touch(taken_->id);
}

}  // namespace kclxx

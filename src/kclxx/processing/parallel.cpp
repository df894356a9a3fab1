// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
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
  void lease_lost() override { dispatcher_->end(); }
  void shard_ended(const checkpointer&) override { dispatcher_->finish(); }
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
  options.drain_timeout = detail::clamped(options.drain_timeout);
  return options;
}

template <class Handler>
processor_factory make(Handler handler, failure_policy policy, parallel_options options) {
  return {[handler = std::move(handler), policy = processing::checked(std::move(policy)),
           options = valid(options)](const shard_context& shard) {
            auto dispatcher = std::make_shared<processing::dispatcher>(
                policy, options, shard, std::is_same_v<Handler, async_record_handler>);
            dispatcher->make_handler(handler);
            return std::make_unique<parallel_processor>(std::move(dispatcher));
          },
          checkpoint_mode::manual};
}

}  // namespace

processor_factory parallel(record_handler handler, failure_policy policy,
                           parallel_options options) {
  return make(std::move(handler), std::move(policy), options);
}

processor_factory parallel(async_record_handler handler, failure_policy policy,
                           parallel_options options) {
  return make(std::move(handler), std::move(policy), options);
}

}  // namespace kclxx

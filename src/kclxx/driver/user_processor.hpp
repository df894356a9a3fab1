// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include <kclxx/processor_factory.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/shard_context.hpp>

#include "session/output.hpp"

namespace kclxx::driver {

/// The user's processor: made by initialize, called by what follows.
///
/// Thread safety: none; belongs to the callbacks' thread.
class user_processor {
 public:
  explicit user_processor(processor_factory make_processor)
      : make_processor_(std::move(make_processor)) {}

  /// `names` are the context's fields, but for the shard and its start.
  /// Errors: what the user's code throws; std::logic_error when the factory made nothing.
  void run(const session::call& call, const shard_context::fields& names,
           const std::shared_ptr<detail::shard_service>& service);

  /// Null before initialize and after destroy().
  [[nodiscard]] record_processor* get() const noexcept { return processor_.get(); }
  void destroy() {
    processor_.reset();
    context_.reset();
  }
  /// Gives the processor and its context away, undestroyed.
  std::pair<std::unique_ptr<record_processor>, std::unique_ptr<shard_context>> abandon() {
    return {std::move(processor_), std::move(context_)};
  }

 private:
  void initialize(const session::call& call, shard_context::fields fields,
                  const std::shared_ptr<detail::shard_service>& service);

  processor_factory make_processor_;
  std::unique_ptr<shard_context> context_;  // outlives the processor
  std::unique_ptr<record_processor> processor_;
};

}  // namespace kclxx::driver

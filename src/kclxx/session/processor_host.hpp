// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include <kclxx/checkpointer.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/shard_context.hpp>

#include "session/action.hpp"

namespace kclxx::session {

/// The user's processor: made by initialize, called by what comes then.
///
/// Thread safety: none.
class processor_host {
 public:
  /// `fields` gives what the context has besides the shard and its start.
  processor_host(processor_factory make_processor, std::function<shard_context::fields()> fields)
      : make_processor_(std::move(make_processor)), fields_(std::move(fields)) {}

  /// Errors: what the user's code throws; std::logic_error when the factory made nothing.
  void run(const call& what, checkpointer& with);

  /// Null before initialize and after destroy().
  [[nodiscard]] record_processor* get() const noexcept { return processor_.get(); }
  void destroy() { processor_.reset(); }

 private:
  void initialize(const call& what);

  processor_factory make_processor_;
  std::function<shard_context::fields()> fields_;
  std::unique_ptr<shard_context> context_;  // outlives the processor
  std::unique_ptr<record_processor> processor_;
};

}  // namespace kclxx::session

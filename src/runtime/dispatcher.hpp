// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kclxx/record_processor.hpp>

#include "runtime/conversation.hpp"
#include "runtime/logger.hpp"

namespace kclxx::runtime {

/// Runs the user's callbacks on the processor thread. The only place where their exceptions are
/// caught.
class dispatcher {
 public:
  dispatcher(processor_factory make_processor, std::shared_ptr<conversation> with, logger& log);

  /// Blocking: until the conversation is over. The processor is destroyed before it returns.
  void run();

 private:
  void dispatch(const session::call& call);
  void initialize(const session::call& call);

  processor_factory make_processor_;
  std::shared_ptr<conversation> conversation_;
  logger& log_;
  checkpointer checkpointer_;
  std::unique_ptr<shard_context> context_;  // outlives the processor
  std::unique_ptr<record_processor> processor_;
};

}  // namespace kclxx::runtime

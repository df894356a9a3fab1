// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kclxx/record_processor.hpp>

#include "runtime/conversation.hpp"
#include "runtime/logger.hpp"
#include "session/processor_host.hpp"

namespace kclxx::runtime {

/// Runs the user's callbacks on the processor thread. The only place where their exceptions are
/// caught.
class dispatcher {
 public:
  dispatcher(processor_factory make_processor, std::shared_ptr<conversation> with, logger& log);
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  /// Blocking: until the conversation is over. The processor is destroyed before it returns.
  void run();

 private:
  std::shared_ptr<conversation> conversation_;
  logger& log_;
  checkpointer checkpointer_;
  session::processor_host host_;
};

}  // namespace kclxx::runtime

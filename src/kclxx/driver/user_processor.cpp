// SPDX-License-Identifier: Apache-2.0
#include "driver/user_processor.hpp"

#include <stdexcept>

namespace kclxx::driver {

void user_processor::run(const session::call& call, const checkpointer& checkpointer,
                         const shard_context::fields& fields) {
  using protocol::action_kind;
  switch (call.kind) {
    case action_kind::initialize:
      return initialize(call, fields);
    case action_kind::process_records:
      return processor_->process_records(call.batch, checkpointer);
    case action_kind::lease_lost:
      return processor_->lease_lost();
    case action_kind::shard_ended:
      return processor_->shard_ended(checkpointer);
    case action_kind::shutdown_requested:
      return processor_->shutdown_requested(checkpointer);
  }
}

void user_processor::initialize(const session::call& call, shard_context::fields fields) {
  fields.shard_id = call.shard_id;
  fields.start_position = call.start_position;
  context_ = std::make_unique<shard_context>(std::move(fields));
  processor_ = make_processor_(*context_);
  if (!processor_) throw std::logic_error("the processor factory returned no processor");
  processor_->initialize(*context_);
}

}  // namespace kclxx::driver

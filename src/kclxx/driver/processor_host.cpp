// SPDX-License-Identifier: Apache-2.0
#include "driver/processor_host.hpp"

#include <stdexcept>

namespace kclxx::driver {

void processor_host::run(const session::call& call, const checkpointer& checkpointer,
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

void processor_host::initialize(const session::call& call, shard_context::fields fields) {
  fields.shard_id = call.shard_id;
  fields.start_position = call.start_position;
  context_ = std::make_unique<shard_context>(std::move(fields));
  processor_ = make_processor_(*context_);
  if (!processor_) throw std::logic_error("the processor factory returned no processor");
  processor_->initialize(*context_);
}

}  // namespace kclxx::driver

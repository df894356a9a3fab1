// SPDX-License-Identifier: Apache-2.0
#include "driver/processor_host.hpp"

#include <stdexcept>

namespace kclxx::driver {

void processor_host::run(const session::call& what, const checkpointer& checkpointer,
                         const shard_context::fields& fields) {
  using protocol::action_kind;
  switch (what.what) {
    case action_kind::initialize:
      return initialize(what, fields);
    case action_kind::process_records:
      return processor_->process_records(what.batch, checkpointer);
    case action_kind::lease_lost:
      return processor_->lease_lost();
    case action_kind::shard_ended:
      return processor_->shard_ended(checkpointer);
    case action_kind::shutdown_requested:
      return processor_->shutdown_requested(checkpointer);
  }
}

void processor_host::initialize(const session::call& what, shard_context::fields fields) {
  fields.shard_id = what.shard_id;
  fields.start_position = what.start_position;
  context_ = std::make_unique<shard_context>(std::move(fields));
  processor_ = make_processor_(*context_);
  if (!processor_) throw std::logic_error("the processor factory returned no processor");
  processor_->initialize(*context_);
}

}  // namespace kclxx::driver

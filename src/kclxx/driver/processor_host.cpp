// SPDX-License-Identifier: Apache-2.0
#include "driver/processor_host.hpp"

#include <stdexcept>

namespace kclxx::driver {

void processor_host::run(const session::call& what, const checkpointer& with,
                         const shard_context::fields& fields) {
  using session::callback;
  switch (what.what) {
    case callback::initialize:
      return initialize(what, fields);
    case callback::process_records:
      return processor_->process_records(what.batch, with);
    case callback::lease_lost:
      return processor_->lease_lost();
    case callback::shard_ended:
      return processor_->shard_ended(with);
    case callback::shutdown_requested:
      return processor_->shutdown_requested(with);
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

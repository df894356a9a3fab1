// SPDX-License-Identifier: Apache-2.0
#include "driver/user_processor.hpp"

#include <stdexcept>

namespace kclxx::driver {

void user_processor::run(const session::call& call, const shard_context::fields& names,
                         const std::shared_ptr<detail::shard_service>& service) {
  using protocol::action_kind;
  const auto with = [&] { return detail::service_access::handle_of<checkpointer>(service); };
  switch (call.kind) {
    case action_kind::initialize:
      return initialize(call, names, service);
    case action_kind::process_records:
      return processor_->process_records(call.batch, with());
    case action_kind::lease_lost:
      return processor_->lease_lost();
    case action_kind::shard_ended:
      return processor_->shard_ended(with());
    case action_kind::shutdown_requested:
      return processor_->shutdown_requested(with());
  }
}

void user_processor::initialize(const session::call& call, shard_context::fields fields,
                                const std::shared_ptr<detail::shard_service>& service) {
  fields.shard_id = call.shard_id;
  fields.start_position = call.start_position;
  context_ = detail::service_access::make<shard_context>(std::move(fields), service);
  processor_ = make_processor_(*context_);
  if (!processor_) throw std::logic_error("the processor factory returned no processor");
  processor_->initialize(*context_);
}

}  // namespace kclxx::driver

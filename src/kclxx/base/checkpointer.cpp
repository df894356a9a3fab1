// SPDX-License-Identifier: Apache-2.0
#include <kclxx/checkpointer.hpp>

namespace kclxx {

namespace {

void throw_if(std::error_code ec) {
  if (ec) throw checkpoint_error(ec);
}

}  // namespace

void checkpointer::checkpoint(const checkpoint_target& target) const {
  throw_if(service_->checkpoint(target.position(), std::nullopt));
}

void checkpointer::checkpoint(const checkpoint_target& target, std::error_code& ec) const {
  ec = service_->checkpoint(target.position(), std::nullopt);
}

void checkpointer::checkpoint_until(const checkpoint_target& target,
                                    clock::time_point deadline) const {
  throw_if(service_->checkpoint(target.position(), deadline));
}

void checkpointer::checkpoint_until(const checkpoint_target& target, clock::time_point deadline,
                                    std::error_code& ec) const {
  ec = service_->checkpoint(target.position(), deadline);
}

void checkpointer::async_checkpoint(const checkpoint_target& target,
                                    checkpoint_handler handler) const {
  service_->async_checkpoint(target.position(), std::move(handler));
}

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#include <kclxx/checkpointer.hpp>

#include "base/checkpoint_port.hpp"

namespace kclxx {

void checkpointer::wait(const optional_position& position, optional_deadline deadline) {
  const auto result = port_->wait(position, deadline);
  if (result.code) throw checkpoint_error(result.code);
}

void checkpointer::wait(const optional_position& position, optional_deadline deadline,
                        std::error_code& ec) {
  ec = port_->wait(position, deadline).code;
}

bool checkpointer::raise(const optional_position& position) {
  const std::error_code ec = port_->request(position);
  if (ec == errc::lease_lost || ec == errc::daemon_gone) return false;
  if (ec) throw checkpoint_error(ec);
  return true;
}

}  // namespace kclxx

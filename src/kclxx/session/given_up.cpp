// SPDX-License-Identifier: Apache-2.0
#include "session/given_up.hpp"

#include <chrono>

namespace kclxx::session {

bool given_up::report_unprocessed(const sequence_position& largest, lease_state lease,
                                  time_point now, outputs& out) {
  if (lease != lease_state::lost && now - since_ >= give_up_patience) {
    out.push_back(log_line{log_level::error,
                           "records still arrive, so this worker has the lease: leaving, for a new "
                           "processor to take the shard over; " +
                               reason_});
    return false;
  }
  if (now - last_report_ < std::chrono::minutes(1)) return true;
  last_report_ = now;
  out.push_back(log_line{log_level::warning, "records up to " + to_string(largest) +
                                                 " are answered, but not processed: " + reason_});
  return true;
}

void given_up::report_unfinished_end(outputs& out) const {
  out.push_back(log_line{log_level::error,
                         "the end of the shard is not checkpointed, and the daemon has not "
                         "reported that the lease is lost: leaving; " +
                             reason_});
}

}  // namespace kclxx::session

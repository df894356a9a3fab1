// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::processing {

/// Logs a warning for each limit of the daemon that the policy's patience exceeds, as far as the
/// environment has them: `kclxx daemon run` exports them.
void warn_of_patience(const failure_policy& policy, const shard_context& shard);

}  // namespace kclxx::processing

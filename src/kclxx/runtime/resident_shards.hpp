// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/exit_status.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/run_options.hpp>

#include "sharing/inheritance.hpp"

namespace kclxx::runtime {

/// Serves all shards that launchers hand over to this process. It refuses them when
/// run_options::share_process is false.
/// Errors: std::exception, before the first shard is accepted.
exit_status run_resident(sharing::inheritance start, const processor_factory& make_processor,
                         const run_options& options);

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
// What environment variables say of a session: those of this process, or of the one that has handed
// a shard over.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include <kclxx/processor_factory.hpp>
#include <kclxx/run_options.hpp>
#include <kclxx/shard_context.hpp>

#include "base/environment.hpp"
#include "io/process_identity.hpp"
#include "runtime/shard_runtime.hpp"

namespace kclxx::runtime {

/// The names of the stream, the application and the worker.
shard_context::fields names_in(const detail::environment& variables);

std::optional<io::process_identity> daemon_in(const detail::environment& variables,
                                              const io::process_identity& parent);

/// With the variables' settings of log and metrics. Errors: std::exception.
std::shared_ptr<shard_runtime> make_runtime(const shard_runtime::configuration& configuration,
                                            const processor_factory& make_processor,
                                            run_options options,
                                            const detail::environment& variables,
                                            std::function<void()> on_stuck = {});

}  // namespace kclxx::runtime

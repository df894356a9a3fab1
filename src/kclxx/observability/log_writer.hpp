// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kclxx/log.hpp>

namespace kclxx::observability {

/// The options with what the environment says. A bad value changes nothing, and is described in
/// `problems`.
log_options with_environment(log_options options, std::vector<std::string>& problems);

}  // namespace kclxx::observability

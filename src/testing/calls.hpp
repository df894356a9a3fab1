// SPDX-License-Identifier: Apache-2.0
// How each version of the daemon words a call.
#pragma once

#include <string>
#include <string_view>

#include <kclxx/testing/daemon.hpp>

#include "daemon_model/lines.hpp"
#include "daemon_model/shard_consumer.hpp"

namespace kclxx::testing {

daemon_model::generation generation(daemon_version version);

/// The line of a call without parameters.
std::string line_of(daemon_model::call_kind what, daemon_version version);

/// The name that the line has, and that its status repeats.
std::string_view action_of(daemon_model::call_kind what, daemon_version version);

/// An action that no daemon has so far. Errors: std::invalid_argument when one has.
std::string unknown_line(std::string_view action);

}  // namespace kclxx::testing

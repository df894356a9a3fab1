// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/local/local_launch.hpp"

namespace kclxx::tool {

/// Has Node.js read the lease table, once or until it is ended, and prints it. Returns Node's exit
/// status.
/// Errors: command_error, start_error, lease_table::bad_scan.
int show_local_leases(const local_call& call);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tool/lease_table/scan.hpp"

namespace kclxx::tool {

/// Scans a lease table with the program aws, and with KCL 3.0 to 3.4 the table beside it.
/// `options`: more for aws, as --region.
/// Blocking: as long as aws runs.
/// Errors: command_error, start_error, lease_table::bad_scan.
[[nodiscard]] lease_table::scan scan_with_aws(const std::string& table,
                                              const std::vector<std::string>& options);

}  // namespace kclxx::tool

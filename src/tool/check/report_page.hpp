// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tool/check/report.hpp"

namespace kclxx::check {

/// The page of --report: one file that needs nothing from anywhere. `command` is what was checked.
void write_page(std::ostream& out, const std::string& command,
                const std::vector<finished_rule>& all);

}  // namespace kclxx::check

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <vector>

#include "tool/check/report.hpp"

namespace kclxx::check {

/// An SVG picture of one line, for a README or a page: how many of the rules were kept.
void write_badge(std::ostream& out, const std::vector<finished_rule>& all);

}  // namespace kclxx::check

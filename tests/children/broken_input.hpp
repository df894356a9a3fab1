// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace kclxx::test {

using json = nlohmann::json;

/// The line with what is not UTF-8, and half a surrogate pair, replaced, for a strict parser.
std::string valid_text(std::string_view line);

/// Whether a child that breaks this rule cannot take this line: it leaves without a status.
bool trips_over(std::string_view rule, const json& message, std::string_view line,
                bool is_after_shutdown_requested);

}  // namespace kclxx::test

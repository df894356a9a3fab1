// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "tool/lease_table/observation.hpp"

namespace kclxx::tool::lease_table {

/// For people. `now`: in seconds since 1970.
[[nodiscard]] std::string to_table(const picture& all, std::int64_t now);

/// A header line, then one line for each lease, of fields between tabs.
[[nodiscard]] std::string to_tsv(const picture& all);

/// An object, in one line or for people; docs/leases.md has its fields.
[[nodiscard]] std::string to_json(const picture& all, const std::string& table, std::int64_t now,
                                  bool in_one_line);

}  // namespace kclxx::tool::lease_table

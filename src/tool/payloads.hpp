// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace kclxx::tool {

/// The most bytes of data that a record can have.
inline constexpr std::size_t max_payload = 10'485'760;

/// A file with a payload in each line, as --data takes it: the lines that are not blank, without
/// their ends. "-" is stdin. Errors: command_error, std::system_error with the file's name.
std::vector<std::string> read_payloads(const std::string& name);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
// Text from elsewhere, for a log.
#pragma once

#include <string>
#include <string_view>

namespace kclxx::detail {

/// The text as one line: control characters are escaped as in C.
std::string one_line(std::string_view text);

/// Any bytes: what is not printable ASCII is escaped as in C.
std::string printable_ascii(std::string_view bytes);

}  // namespace kclxx::detail

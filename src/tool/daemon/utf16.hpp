// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::tool {

/// Java's strings and UTF-8.
std::string to_utf8(std::u16string_view text);
/// A byte that belongs to no such sequence becomes the character with its number (ISO-8859-1).
std::u16string to_utf16(std::string_view text);

}  // namespace kclxx::tool

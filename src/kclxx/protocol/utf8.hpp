// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::protocol {

bool is_utf8(std::string_view text);

/// The text with each maximal invalid part replaced by U+FFFD, as Unicode recommends.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace kclxx::protocol

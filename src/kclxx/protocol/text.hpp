// SPDX-License-Identifier: Apache-2.0
// The rare texts that need more than a view: escapes, and bytes that are not UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kclxx::protocol {

/// The text of a JSON string token, given with its quotes; std::nullopt for a bad escape.
std::optional<std::string> unescape(std::string_view token);

/// Appends the text as a JSON string, in quotes; what is not UTF-8 becomes U+FFFD.
void append_quoted(std::string& out, std::string_view text);

bool is_utf8(std::string_view text);

/// The text with each maximal invalid part replaced by U+FFFD, as Unicode recommends.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
// Strings of JSON that need more than a view, since they have escapes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace kclxx::protocol {

bool is_utf8(std::string_view text);

/// The text with each maximal invalid part replaced by U+FFFD, as Unicode recommends.
std::string replace_invalid_utf8(std::string_view text);

/// Replaces each escape of half a surrogate pair in the JSON text by the escape of U+FFFD, in
/// place. Returns whether there was one.
bool replace_half_surrogates(char* text, std::size_t size);

/// The text of a JSON string token, given with its quotes; std::nullopt for a bad escape. Half of
/// a surrogate pair (\ud800) becomes U+FFFD, and sets `replaced`.
std::optional<std::string> unescape(std::string_view token, bool& replaced);

/// Appends the text as a JSON string, in quotes. Bytes that are not UTF-8 become U+FFFD. Characters
/// that a terminal could obey are escaped, although JSON allows some of them: `tail -f` shows a log
/// on a terminal.
void append_quoted(std::string& out, std::string_view text);

}  // namespace kclxx::protocol

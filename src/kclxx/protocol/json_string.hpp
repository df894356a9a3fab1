// SPDX-License-Identifier: Apache-2.0
// Strings of JSON: what is wrong with their text, and how they are written.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kclxx::protocol {

bool is_utf8(std::string_view text);

/// The text with each maximal invalid part replaced by U+FFFD, as Unicode recommends.
std::string replace_invalid_utf8(std::string_view text);

/// Replaces each escape of half a surrogate pair in the JSON text by the escape of U+FFFD, in
/// place. Returns whether there was one.
bool replace_half_surrogates(char* text, std::size_t size);

/// Appends the text as a JSON string, in quotes. Bytes that are not UTF-8 become U+FFFD. Characters
/// that a terminal could obey are escaped, although JSON allows some of them: `tail -f` shows a log
/// on a terminal.
void append_quoted(std::string& out, std::string_view text);

}  // namespace kclxx::protocol

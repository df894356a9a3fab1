// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "tool/transcript/entry.hpp"

namespace kclxx::transcript {

/// Reads one line after the header into `out`, whose `line` is a view of `line`, or of `text`
/// where it was escaped. Null, or what is wrong.
const char* parse_entry(std::string_view line, entry& out, std::string& text);

/// Whether a line is unchanged in a transcript: it begins with { and ends with }.
[[nodiscard]] bool is_object(std::string_view line) noexcept;

}  // namespace kclxx::transcript

// SPDX-License-Identifier: Apache-2.0
// Text for people: what the tool's commands print, each thing in one way.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/printable.hpp"

namespace kclxx::tool {

using detail::printable;

/// The text for XML 1.0 and HTML, in content or in an attribute. What is not UTF-8 becomes U+FFFD;
/// what XML cannot hold, or a reader could obey, becomes '?', but for newlines and tabs.
std::string xml(std::string_view text);

/// Three digits and a unit: "640 us", "1.5 s", "20 min".
std::string to_text(std::chrono::nanoseconds time);

}  // namespace kclxx::tool

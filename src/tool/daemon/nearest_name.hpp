// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// The name that `text` is probably a misspelling of; empty: none is near. Case does not count.
std::string nearest(std::string_view text, std::span<const std::string_view> names);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::tool {

/// A word for sh that means just this text.
std::string shell_word(std::string_view text);

}  // namespace kclxx::tool

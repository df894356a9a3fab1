// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "tool/daemon/java_options.hpp"

namespace kclxx::tool {

/// What the control groups of this process, of version 2 or 1, leave of a machine. `root` is "/",
/// with /proc and /sys below it. What cannot be read limits nothing.
usable_machine within_cgroups(usable_machine whole, const std::filesystem::path& root);

}  // namespace kclxx::tool

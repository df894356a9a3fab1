// SPDX-License-Identifier: Apache-2.0
// Keys from the environment, which the daemon itself cannot read.
#pragma once

#include <string>
#include <vector>

#include "tool/daemon/kcl_version.hpp"
#include "tool/daemon/properties.hpp"

namespace kclxx::tool {

/// The variables KCLXX_PROPERTY_<key>, from "NAME=value" texts, sorted by key. Two underscores
/// mean a dot, which many shells refuse in a name. property::origin is the variable's name.
/// Errors: properties_error at line 0 for a variable that names no key.
properties overrides_in(const std::vector<std::string>& environment);

/// `all` with each override in its key's place, whatever spelling of it the major version takes for
/// the same; an empty override takes the key out. One that takes nothing out stays when the
/// version has no such key, so that it is found to be a mistake.
properties with_overrides(properties all, const properties& overrides, kcl_version kcl);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/descriptor.hpp"

namespace kclxx::tool {

using io::descriptor;

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "conformance/script.hpp"

namespace kclxx::oracle {

/// A dialogue as a daemon would lead it, with a child that is mostly right and now and then wrong
/// in every way that the model claims to know. The same seed gives the same script.
script random_script(std::uint64_t seed, daemon_model::daemon_version version);

}  // namespace kclxx::oracle

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>

#include "conformance/script.hpp"

namespace kclxx::oracle {

/// Plays the script on the model; the events are of the same form as those of the real classes.
nlohmann::json play_on_model(const script& script, daemon_model::daemon_version version);

}  // namespace kclxx::oracle

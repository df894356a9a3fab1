// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "conformance/script.hpp"

namespace kclxx::oracle {

/// Plays the script on the model; the events are of the same form as those of the real classes.
nlohmann::json play_on_model(const script& script, daemon_model::kcl version);

/// Plays the scripts on the real classes, in one JVM that is started with these arguments. The
/// events of each, in the scripts' order.
/// Blocking: until the JVM has ended.
/// Errors: std::runtime_error when it cannot be started, fails, or answers less than it was asked.
std::vector<nlohmann::json> play_on_real_classes(const std::vector<script>& scripts,
                                                 const std::vector<std::string>& java);

}  // namespace kclxx::oracle

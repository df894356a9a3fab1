// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <stop_token>

namespace kclxx::detail {

/// Returns true at the deadline, false as soon as `stop` stops. Blocking: yes.
bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop);

}  // namespace kclxx::detail

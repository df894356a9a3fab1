// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <poll.h>
#include <span>

#include "tool/process/descriptor.hpp"

namespace kclxx::cli {

/// poll(2) until one of them is ready, whatever signals come; a negative descriptor is passed over.
/// False: the deadline came first. A deadline in the past looks once.
/// Errors: std::system_error.
bool poll_until(std::span<pollfd> all, std::chrono::steady_clock::time_point deadline);

/// Errors: std::system_error.
void set_non_blocking(const descriptor& fd);

}  // namespace kclxx::cli

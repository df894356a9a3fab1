// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kclxx/log.hpp>

namespace kclxx::observability {

/// What is wrong with KCLXX_LOG, or nothing.
std::string log_problem();

}  // namespace kclxx::observability

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include <kclxx/run_options.hpp>

namespace kclxx::runtime {

/// Before there is a session: to options.log, or to stderr.
void log(const run_options& options, log_level level, const std::string& text);
/// About what prevents a session.
void log_failure(const run_options& options, const std::exception& error);

}  // namespace kclxx::runtime

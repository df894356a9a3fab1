// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <kclxx/log.hpp>

namespace kclxx::observability {

using date = std::chrono::system_clock::time_point;

/// "2026-11-22T05:43:21.123Z".
std::string to_iso_8601(date time);

/// A whole line, with its newline: "kclxx shardId-000000000003 warning: ...".
std::string text_line(const log_entry& entry);
std::string json_line(const log_entry& entry, date time);

/// Reads KCLXX_LOG into the options. Returns what is wrong with it, or nothing.
std::string read_log_variable(std::string_view value, log_options& options);

}  // namespace kclxx::observability

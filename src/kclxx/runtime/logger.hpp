// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include <kclxx/run_options.hpp>

namespace kclxx::runtime {

/// Writes a message to a descriptor as one line ("kclxx shardId-000000000003 warning: ..."), or as
/// much of it as is taken at once: for a thread that must not be held up. Unbuffered, so that
/// std::_Exit loses nothing.
///
/// Thread safety: any thread; lines are not mixed.
void log_now(int descriptor, const log_entry& entry) noexcept;

/// The message about what prevents a session, or ends it.
inline std::string cannot_serve(const char* reason) {
  return std::string("cannot serve the daemon: ") + reason;
}

/// Before there is a session: to options.log, or to stderr. Errors: std::bad_alloc.
void log(const run_options& options, log_level level, const std::string& text);
/// The same, of what prevents a session.
void log_failure(const run_options& options, const std::exception& error) noexcept;

}  // namespace kclxx::runtime

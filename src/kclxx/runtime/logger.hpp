// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <kclxx/run_options.hpp>

namespace kclxx::runtime {

/// Writes a message to a descriptor as one line ("kclxx shardId-000000000003 warning: ..."),
/// unbuffered, so that std::_Exit loses nothing.
///
/// Thread safety: any thread; lines are not mixed.
void log_to(int descriptor, const log_entry& entry) noexcept;

/// The same, but only if it is taken at once: for a thread that must not be held up.
void log_to_if_writable(int descriptor, const log_entry& entry) noexcept;

/// The message about what prevents a session, or ends it.
inline std::string cannot_serve(const char* why) {
  return std::string("cannot serve the daemon: ") + why;
}

}  // namespace kclxx::runtime

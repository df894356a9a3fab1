// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <system_error>

#include "io/process_identity.hpp"

namespace kclxx::io {

/// Names the daemon's process to the programs below it, whatever is in between: "PID START", or
/// no_daemon where one of the tool's commands plays the daemon.
inline constexpr char daemon_variable[] = "KCLXX_DAEMON_PROCESS";
inline constexpr char no_daemon[] = "none";

[[nodiscard]] std::string to_text(const process_identity& process);

/// The daemon's process: what the variable has, if that process lives, else the parent.
/// std::nullopt: there is none.
[[nodiscard]] std::optional<process_identity> daemon_process(
    const std::optional<std::string>& variable, const process_identity& parent);

/// Sends SIGTERM to that very process. Errors: std::errc::no_such_process when it has ended, and
/// those of pidfd_open and pidfd_send_signal. Blocking: no.
[[nodiscard]] std::error_code ask_to_end(const process_identity& process) noexcept;

}  // namespace kclxx::io

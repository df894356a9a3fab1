// SPDX-License-Identifier: Apache-2.0
#include "io/daemon_process.hpp"

#include <cerrno>
#include <csignal>
#include <sstream>

namespace kclxx::io {

std::string to_text(const process_identity& process) {
  return std::to_string(process.id) + " " + std::to_string(process.start);
}

std::optional<process_identity> daemon_process(const std::optional<std::string>& variable,
                                               const process_identity& parent) {
  if (variable == no_daemon) return std::nullopt;
  if (variable) {
    process_identity named;
    std::istringstream fields(*variable);
    fields >> named.id >> named.start;
    if (fields && named.start != 0 && start_of(named.id) == named.start) return named;
  }
  return parent.start == 0 ? std::nullopt : std::optional(parent);
}

std::error_code ask_to_end(const process_identity& process) noexcept {
  const descriptor opened = open_process(process);
  // By its number: <sys/pidfd.h> is not there before glibc 2.36.
  if (!opened.is_open() ||
      ::syscall(SYS_pidfd_send_signal, opened.get(), SIGTERM, nullptr, 0) == -1) {
    return {errno, std::generic_category()};
  }
  return {};
}

}  // namespace kclxx::io

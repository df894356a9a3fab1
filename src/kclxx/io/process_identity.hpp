// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/syscall.h>
#include <system_error>
#include <unistd.h>

#include "io/descriptor.hpp"

namespace kclxx::io {

/// A process. Its start time tells it from a later process with the same number.
struct process_identity {
  std::uint64_t id = 0;
  std::uint64_t start = 0;  // see start_of
  bool operator==(const process_identity&) const = default;
};

/// A pidfd, which becomes readable when the process ends. Errors: not open, with errno.
inline descriptor open_process(std::uint64_t process) {
  // The system call's number, since glibc before 2.36 has no <sys/pidfd.h>.
  return descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

/// When a process started, in clock ticks after the system's start; 0 when there is no such
/// process. Needs no C++ runtime.
inline std::uint64_t start_of(std::uint64_t process) {
  char text[1024];
  std::snprintf(text, sizeof text, "/proc/%llu/stat", static_cast<unsigned long long>(process));
  const descriptor file(::open(text, O_RDONLY | O_CLOEXEC));
  const ssize_t size = ::read(file.get(), text, sizeof text - 1);
  if (size <= 0) return 0;
  text[size] = '\0';
  // The second field is a name in parentheses, which may contain anything; this is field 22.
  const char* at = std::strrchr(text, ')');
  for (int field = 2; at != nullptr && field < 22; ++field) at = std::strchr(at + 1, ' ');
  return at == nullptr ? 0 : std::strtoull(at, nullptr, 10);
}

/// A pidfd of that very process. Errors: not open, with errno.
inline descriptor open_process(const process_identity& process) {
  descriptor opened = open_process(process.id);
  if (!opened.is_open() || start_of(process.id) == process.start) return opened;
  opened.close();
  errno = ESRCH;
  return opened;
}

inline process_identity this_process() {
  const auto id = static_cast<std::uint64_t>(::getpid());
  return {id, start_of(id)};
}

/// The process that started this one. `start` is 0 when it has ended, or cannot be seen.
inline process_identity parent_process() {
  process_identity parent{static_cast<std::uint64_t>(::getppid())};
  const std::uint64_t start = parent.id == 0 ? 0 : start_of(parent.id);
  if (static_cast<std::uint64_t>(::getppid()) == parent.id) parent.start = start;
  return parent;
}

/// Names the daemon's process to the programs below it, whatever is in between: "PID START", or
/// no_daemon where one of the tool's commands plays the daemon.
inline constexpr char daemon_variable[] = "KCLXX_DAEMON_PROCESS";
inline constexpr char no_daemon[] = "none";

inline std::string to_text(const process_identity& process) {
  return std::to_string(process.id) + " " + std::to_string(process.start);
}

/// The daemon's process: the process that the variable names, if it lives, else the parent.
/// std::nullopt: there is none.
inline std::optional<process_identity> daemon_process(const std::optional<std::string>& variable,
                                                      const process_identity& parent) {
  if (variable == no_daemon) return std::nullopt;
  process_identity named;
  if (variable &&
      std::sscanf(variable->c_str(), "%" SCNu64 " %" SCNu64, &named.id, &named.start) == 2 &&
      named.start != 0 && start_of(named.id) == named.start) {
    return named;
  }
  return parent.start == 0 ? std::nullopt : std::optional(parent);
}

/// Sends SIGTERM to that very process. Errors: std::errc::no_such_process when it has ended, and
/// those of pidfd_open and pidfd_send_signal.
/// Blocking: no.
inline std::error_code ask_to_end(const process_identity& process) noexcept {
  const descriptor opened = open_process(process);
  // The system call's number, as in open_process.
  if (!opened.is_open() ||
      ::syscall(SYS_pidfd_send_signal, opened.get(), SIGTERM, nullptr, 0) == -1) {
    return {errno, std::generic_category()};
  }
  return {};
}

}  // namespace kclxx::io

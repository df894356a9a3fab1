// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/descriptor.hpp"

namespace kclxx::io {

/// A process, whatever gets its number after it.
struct process_identity {
  std::uint64_t id = 0;
  std::uint64_t start = 0;  // see start_of
  bool operator==(const process_identity&) const = default;
};

/// A pidfd, which becomes readable when the process ends. Errors: not open, with errno.
inline descriptor open_process(std::uint64_t process) {
  // By its number: <sys/pidfd.h> is not there before glibc 2.36.
  return descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

/// When a process started, in clock ticks after the system; 0 when there is none. Without the C++
/// runtime.
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

/// That very process. Errors: not open, with errno.
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

}  // namespace kclxx::io

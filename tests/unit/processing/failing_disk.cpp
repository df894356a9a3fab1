// SPDX-License-Identifier: Apache-2.0
// The C library's functions, in front of the real ones, in this program alone.
#include "unit/processing/failing_disk.hpp"

#include <cerrno>
#include <map>
#include <string>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

namespace kclxx::test {

namespace {

struct fault {
  int error;
  std::function<void()> before;
};

std::map<std::string, fault>& faults() {
  static std::map<std::string, fault> all;
  return all;
}

/// Whether the call fails; errno is set then.
bool fails(const char* function) {
  const auto found = faults().find(function);
  if (found == faults().end()) return false;
  const fault one = found->second;
  faults().erase(found);
  if (one.before) one.before();
  errno = one.error;
  return one.error != 0;
}

template <class... Arguments>
long call(const char* function, long number, Arguments... arguments) {
  return fails(function) ? -1 : ::syscall(number, arguments...);
}

}  // namespace

failing_disk::failing_disk(const char* function, int error) { faults()[function] = {error, {}}; }
failing_disk::failing_disk(const char* function, std::function<void()> before) {
  faults()[function] = {0, std::move(before)};
}

failing_disk::~failing_disk() { faults().clear(); }

bool failing_disk::has_failed() { return faults().empty(); }

}  // namespace kclxx::test

using kclxx::test::call;
using kclxx::test::fails;

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name)
extern "C" {
int flock(int fd, int operation) { return int(call("flock", SYS_flock, fd, operation)); }
int fdatasync(int fd) { return int(call("fdatasync", SYS_fdatasync, fd)); }
uid_t geteuid() { return uid_t(::syscall(SYS_geteuid)) + (fails("geteuid") ? 1 : 0); }
int fsync(int fd) { return int(call("fsync", SYS_fsync, fd)); }
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

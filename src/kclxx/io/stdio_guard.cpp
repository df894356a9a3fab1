// SPDX-License-Identifier: Apache-2.0
#include "io/stdio_guard.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace kclxx::io {

namespace {

[[noreturn]] void fail(const char* step) {
  throw std::system_error(errno, std::generic_category(), step);
}

void redirect(int source, int target, const char* step) {
  if (::dup2(source, target) == -1) fail(step);
}

}  // namespace

bool is_file(int fd) noexcept {
  struct stat status {};
  if (::fstat(fd, &status) == -1) return false;
  const bool is_device = S_ISCHR(status.st_mode) && ::isatty(fd) != 1;
  return S_ISREG(status.st_mode) || S_ISDIR(status.st_mode) || is_device;
}

stdio_guard::stdio_guard() {
  // Above the three standard descriptors, so that no redirection can hit them.
  input_ = descriptor(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!input_.is_open()) fail("stdin cannot be duplicated");
  output_ = descriptor(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!output_.is_open()) fail("stdout cannot be duplicated");
  // Not close-on-exec: where fd 2 is closed, this becomes fd 2, which started programs need, too.
  const int null = ::open("/dev/null", O_RDWR);
  if (null == -1) fail("/dev/null cannot be opened");
  redirect(null, STDIN_FILENO, "stdin cannot be led to /dev/null");
  if (null != STDERR_FILENO) ::close(null);
  redirect(STDERR_FILENO, STDOUT_FILENO, "stdout cannot be led to stderr");
  buffer_stdout_by_line();
  input_is_terminal_ = ::isatty(input()) == 1;
  enlarge_pipe(input());
}

void enlarge_pipe(int fd) noexcept {
#if defined(F_SETPIPE_SZ)
  // A large batch takes fewer and larger reads. 1 MiB was measured to bring nothing beyond this.
  // The pipes of a user may have 64 MiB together; when these are used up, every new pipe of the
  // user, also the daemon's, has 8 KiB.
  ::fcntl(fd, F_SETPIPE_SZ, 1 << 18);
#endif
}

void buffer_stdout_by_line() noexcept {
  // A new buffer lets glibc flush the old buffer. With the old one it would not notice newlines in
  // a stream that was printed to before.
  static char buffer[BUFSIZ];
  std::setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
}

}  // namespace kclxx::io

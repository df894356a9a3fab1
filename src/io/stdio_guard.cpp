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

void redirect(int from, int to, const char* step) {
  if (::dup2(from, to) == -1) fail(step);
}

}  // namespace

stdio_guard::stdio_guard() {
  // Above the standard three, so that no redirection can hit them.
  input_ = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
  if (input_ == -1) fail("stdin cannot be duplicated");
  output_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (output_ == -1) {
    const int error = errno;
    ::close(input_);
    errno = error;
    fail("stdout cannot be duplicated");
  }
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null == -1) fail("/dev/null cannot be opened");
  if (::fcntl(STDERR_FILENO, F_GETFD) == -1) redirect(null, STDERR_FILENO, "stderr is closed");
  redirect(null, STDIN_FILENO, "stdin cannot be led to /dev/null");
  redirect(STDERR_FILENO, STDOUT_FILENO, "stdout cannot be led to stderr");
  if (null > STDERR_FILENO) ::close(null);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);

  struct stat status {};
  if (::fstat(input_, &status) == -1) fail("stdin cannot be examined");
  input_is_terminal_ = ::isatty(input_) == 1;
  input_is_file_ = S_ISREG(status.st_mode) || (S_ISCHR(status.st_mode) && !input_is_terminal_);
#if defined(F_SETPIPE_SZ)
  // Fewer and larger reads of a large batch. May be refused, by a limit per user.
  ::fcntl(input_, F_SETPIPE_SZ, 1 << 20);
#endif
}

stdio_guard::~stdio_guard() {
  ::close(input_);
  ::close(output_);
}

}  // namespace kclxx::io

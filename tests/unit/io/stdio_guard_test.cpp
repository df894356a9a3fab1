// SPDX-License-Identifier: Apache-2.0
// Each case runs in a forked copy: the guard belongs to the process.
#include "io/stdio_guard.hpp"

#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <string>
#include <system_error>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/forked.hpp"

namespace kclxx::io {

namespace {

using test::first_false;
using test::forked_result;
using test::in_forked_copy;
using test::is_open;

bool closes_on_exec(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }
}  // namespace

TEST_CASE("a closed stdin or stdout is an error that names it", "[io][stdio_guard]") {
  const int fd = GENERATE(STDIN_FILENO, STDOUT_FILENO);
  const forked_result child = in_forked_copy([fd] {
    ::close(fd);
    try {
      const stdio_guard guard;
    } catch (const std::system_error& error) {
      const char* name = fd == STDIN_FILENO ? "stdin" : "stdout";
      return first_false({error.code() == std::errc::bad_file_descriptor,
                          std::string(error.what()).find(name) != std::string::npos});
    }
    return 3;
  });
  CHECK(child.status == 0);
}

TEST_CASE("a closed stderr becomes /dev/null, for programs that are started too",
          "[io][stdio_guard]") {
  const forked_result child = in_forked_copy([] {
    ::close(STDERR_FILENO);
    const stdio_guard guard;
    const bool keeps = is_open(STDERR_FILENO) && !closes_on_exec(STDERR_FILENO);
    const bool is_writable =
        ::write(STDERR_FILENO, "x", 1) == 1 && ::write(STDOUT_FILENO, "x", 1) == 1;
    return first_false({keeps, is_writable});
  });
  CHECK(child.status == 0);
  CHECK(child.out.empty());
}

TEST_CASE("no descriptor but the two private ones is left open", "[io][stdio_guard]") {
  const forked_result child = in_forked_copy([] {
    const int next = ::dup(STDERR_FILENO);
    ::close(next);
    int count = 0;
    {
      const stdio_guard guard;
      for (int fd = 3; fd < next + 20; ++fd) count += is_open(fd) ? 1 : 0;
    }
    for (int fd = 3; fd < next + 20; ++fd) count -= is_open(fd) ? 1 : 0;
    return count;
  });
  CHECK(child.status == 2);
}

TEST_CASE("a plain file and /dev/null are files, a pipe is not", "[io][stdio_guard]") {
  const auto kind = [](int input) {
    return in_forked_copy(
               [] {
                 const stdio_guard guard;
                 return guard.input_is_terminal() ? 2 : is_file(guard.input()) ? 1 : 0;
               },
               input)
        .status;
  };
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK(kind(::fileno(file)) == 1);
  std::fclose(file);
  const int null = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  CHECK(kind(null) == 1);
  ::close(null);
  CHECK(kind(-1) == 0);
}

TEST_CASE("a terminal is a terminal, not a file", "[io][stdio_guard]") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal == -1) return;
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const int input = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY);
  REQUIRE(input != -1);
  const forked_result child = in_forked_copy(
      [] {
        const stdio_guard guard;
        return first_false({guard.input_is_terminal(), !is_file(guard.input())});
      },
      input);
  ::close(input);
  ::close(terminal);
  CHECK(child.status == 0);
}

}  // namespace kclxx::io

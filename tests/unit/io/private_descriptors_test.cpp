// SPDX-License-Identifier: Apache-2.0
#include "io/private_descriptors.hpp"

#include <array>
#include <atomic>
#include <fcntl.h>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/forked.hpp"
#include "support/text.hpp"

namespace kclxx::io {

namespace {

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

}  // namespace

TEST_CASE("a copy of the process has no private descriptors, and all others", "[io][P5]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  keep_private(ends[0]);
  const unsigned before = fork_count();
  CHECK(test::in_forked_copy([&] {
          return !is_open(ends[0]) && is_open(ends[1]) ? 0 : 1;
        }).status == 0);
  CHECK(is_open(ends[0]));
  CHECK(fork_count() == before);

  forget_private(ends[0]);
  CHECK(test::in_forked_copy([&] {
          return is_open(ends[0]) && fork_count() == before + 1 ? 0 : 1;
        }).status == 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_CASE("no copy is made between a descriptor's opening and its being kept private", "[io][P5]") {
  int opened = -1;
  std::atomic<pid_t> forking = 0;
  std::atomic<bool> is_copied = false;
  int status = -1;
  std::thread other;
  {
    fork_block block;
    opened = ::dup(STDIN_FILENO);
    other = std::thread([&] {
      forking = static_cast<pid_t>(::syscall(SYS_gettid));
      const pid_t copy = ::fork();
      if (copy == 0) ::_exit(is_open(opened) ? 1 : 0);
      is_copied = true;
      ::waitpid(copy, &status, 0);
    });
    // The other thread sleeps until the block ends.
    CHECK(test::eventually([&] {
      const std::string path = "/proc/self/task/" + std::to_string(forking) + "/stat";
      return is_copied || test::contains(test::read_file(path), ") S ");
    }));
    CHECK_FALSE(is_copied);
    block.keep_private({opened});
  }
  other.join();
  CHECK(status == 0);
  forget_private(opened);
  ::close(opened);
}

}  // namespace kclxx::io

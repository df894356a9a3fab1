// SPDX-License-Identifier: Apache-2.0
#include "io/private_descriptors.hpp"

#include <array>
#include <atomic>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/eventually.hpp"
#include "support/forked.hpp"
#include "support/text.hpp"

namespace kclxx::io {

namespace {

using test::is_open;

/// A thread that makes a copy of the process, with or without this descriptor.
class copier {
 public:
  explicit copier(int fd)
      : thread_([this, fd] {
          id_ = static_cast<pid_t>(::syscall(SYS_gettid));
          const pid_t copy = ::fork();
          if (copy == 0) ::_exit(is_open(fd) ? 1 : 0);
          is_done_ = true;
          ::waitpid(copy, &status_, 0);
        }) {
    const bool sleeps_or_done = test::eventually([&] {
      const std::string path = "/proc/self/task/" + std::to_string(id_) + "/stat";
      return is_done_ || test::contains(test::read_file(path), ") S ");
    });
    was_blocked_ = sleeps_or_done && !is_done_;
  }

  /// Whether it had to wait.
  [[nodiscard]] bool was_blocked() const { return was_blocked_; }
  bool copy_has_it() {
    thread_.join();
    return status_ != 0;
  }

 private:
  bool was_blocked_ = false;
  int status_ = -1;
  std::atomic<pid_t> id_ = 0;
  std::atomic<bool> is_done_ = false;
  std::thread thread_;
};

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

  const int number = ends[0];
  close_private(number);
  CHECK_FALSE(is_open(number));
  CHECK(::dup2(ends[1], number) == number);  // another file gets it
  CHECK(test::in_forked_copy([&] {
          return is_open(number) && fork_count() == before + 1 ? 0 : 1;
        }).status == 0);
  for (const int fd : ends) ::close(fd);
}

TEST_CASE("no copy is made between a descriptor's opening and its being kept private", "[io][P5]") {
  int opened = -1;
  std::optional<copier> other;
  {
    fork_block block;
    opened = ::dup(STDIN_FILENO);
    other.emplace(opened);
    CHECK(other->was_blocked());
    block.keep_private({opened});
  }
  CHECK_FALSE(other->copy_has_it());
  close_private(opened);
}

}  // namespace kclxx::io

#ifndef KCLXX_IS_SANITIZED
namespace kclxx::io {

namespace {

std::optional<int> closed_with_copy;
std::optional<copier> while_closed;

}  // namespace

TEST_CASE("no copy is made that has a private descriptor while it is closed", "[io][P5]") {
  private_descriptor one(STDIN_FILENO);
  closed_with_copy = one.get();
  one.close();
  CHECK(while_closed->was_blocked());
  CHECK_FALSE(while_closed->copy_has_it());
}

}  // namespace kclxx::io

extern "C" int close(int fd) {
  using namespace kclxx::io;
  if (fd == closed_with_copy) {
    closed_with_copy.reset();
    while_closed.emplace(fd);
  }
  return static_cast<int>(::syscall(SYS_close, fd));
}
#endif

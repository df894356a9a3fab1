// SPDX-License-Identifier: Apache-2.0
#include "io/private_descriptors.hpp"

#include <array>
#include <fcntl.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/forked.hpp"

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

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fcntl.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <thread>
#include <unistd.h>

#include "io/lines.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/text.hpp"

namespace {
bool is_old_linux = false;
int interrupted_looks = 0;
int looks = 0;
}  // namespace

/// In place of the system's, for write_now.
extern "C" ssize_t pwritev2(int fd, const iovec* pieces, int count, off_t at, int flags) {
  if (is_old_linux && fd >= 0) return errno = EOPNOTSUPP, -1;
  return ::syscall(SYS_pwritev2, fd, pieces, count, at, 0, flags);
}

/// The same; a signal comes `interrupted_looks` times.
extern "C" int poll(pollfd* look, nfds_t count, int timeout) {
  ++looks;
  if (interrupted_looks > 0) return --interrupted_looks, errno = EINTR, -1;
  const timespec limit{timeout / 1000, timeout % 1000 * 1'000'000L};
  return ::ppoll(look, count, timeout < 0 ? nullptr : &limit, nullptr);
}

namespace kclxx::io {

TEST_CASE("a text larger than the pipe is written whole, blocking or not", "[io][line_writer]") {
  const bool is_non_blocking = GENERATE(false, true);
  test::open_pipe pipe;
  if (is_non_blocking) ::fcntl(pipe.write_end(), F_SETFL, O_NONBLOCK);
  std::string got;
  std::thread reading([&] { got = test::read_all(pipe.read_end()); });
  std::string text(3 << 20, 'x');
  for (std::size_t i = 0; i < text.size(); i += 4099) text[i] = static_cast<char>('a' + i % 26);
  const std::error_code error = write_all(pipe.write_end(), text);
  pipe.close_write_end();
  reading.join();
  CHECK_FALSE(error);
  const bool is_same = got == text;
  CHECK(is_same);
}

TEST_CASE("a reader that is gone is a broken pipe", "[io][line_writer]") {
  test::open_pipe pipe;
  pipe.close_read_end();
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  CHECK(write_all(pipe.write_end(), "x") == std::errc::broken_pipe);
  std::signal(SIGPIPE, before);
}

TEST_CASE("nothing to write is no error, even without a descriptor", "[io][line_writer]") {
  CHECK_FALSE(write_all(-1, ""));
  CHECK(write_all(-1, "x") == std::errc::bad_file_descriptor);
}

TEST_CASE("what a reader does not take is left, and nobody waits for it", "[io][line_writer]") {
  const bool is_socket = GENERATE(false, true);
  is_old_linux = GENERATE(false, true);
  std::array<int, 2> ends{};
  REQUIRE((is_socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) : ::pipe(ends.data())) ==
          0);
  std::string text(3 << 20, 'x');
  for (std::size_t i = 0; i < text.size(); i += 4099) text[i] = static_cast<char>('a' + i % 26);
  std::string_view rest = text;
  std::string got;
  while (!rest.empty()) {
    const std::size_t before = rest.size();
    REQUIRE_FALSE(write_now(ends[1], rest));
    REQUIRE(rest.size() < before);  // something was read
    std::string bytes(before - rest.size(), ' ');
    REQUIRE(::read(ends[0], bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    got += bytes;
  }
  const bool is_same = got == text;
  CHECK(is_same);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  ::close(ends[0]);
  rest = "x";
  CHECK(write_now(ends[1], rest) == std::errc::broken_pipe);
  CHECK(rest == "x");
  std::signal(SIGPIPE, before);
  ::close(ends[1]);
  CHECK(write_now(-1, rest) == std::errc::bad_file_descriptor);
  is_old_linux = false;
}

TEST_CASE("after a signal room is looked for again, and not taken for granted",
          "[io][line_writer]") {
  is_old_linux = true;
  interrupted_looks = 3;
  looks = 0;
  test::open_pipe pipe;
  std::string_view rest = "line";
  CHECK_FALSE(write_now(pipe.write_end(), rest));
  CHECK(rest.empty());
  CHECK(looks == 4);
  is_old_linux = false;
}

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#include "io/line_writer.hpp"

#include <array>
#include <csignal>
#include <fcntl.h>
#include <string>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/text.hpp"

namespace kclxx::io {

TEST_CASE("a text larger than the pipe is written whole, blocking or not", "[io][line_writer]") {
  const bool is_non_blocking = GENERATE(false, true);
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  if (is_non_blocking) ::fcntl(ends[1], F_SETFL, O_NONBLOCK);
  std::string got;
  std::thread reading([&] { got = test::read_all(ends[0]); });
  std::string text(3 << 20, 'x');
  for (std::size_t i = 0; i < text.size(); i += 4099) text[i] = static_cast<char>('a' + i % 26);
  const std::error_code error = write_all(ends[1], text);
  ::close(ends[1]);
  reading.join();
  ::close(ends[0]);
  CHECK_FALSE(error);
  const bool is_same = got == text;
  CHECK(is_same);
}

TEST_CASE("a reader that is gone is a broken pipe", "[io][line_writer]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  ::close(ends[0]);
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  CHECK(write_all(ends[1], "x") == std::errc::broken_pipe);
  std::signal(SIGPIPE, before);
  ::close(ends[1]);
}

TEST_CASE("nothing to write is no error, even without a descriptor", "[io][line_writer]") {
  CHECK_FALSE(write_all(-1, ""));
  CHECK(write_all(-1, "x") == std::errc::bad_file_descriptor);
}

}  // namespace kclxx::io

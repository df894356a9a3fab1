// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <optional>
#include <sys/resource.h>
#include <system_error>
#include <thread>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "io/event_loop.hpp"
#include "io/reactor.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"
#include "support/forked.hpp"

namespace kclxx::io {

namespace {

using namespace std::chrono_literals;
using result = input_poll::result;

struct wire : test::open_pipe {
  void write() const { REQUIRE(::write(write_end(), "x", 1) == 1); }
};

}  // namespace

TEST_CASE("input is seen, and stays to be read", "[io][input_poll]") {
  const wire from;
  input_poll poll(from.read_end());
  CHECK(poll.wait(0ms) == result::timed_out);
  CHECK(poll.wait(-5ms) == result::timed_out);
  from.write();
  CHECK(poll.wait(std::nullopt) == result::readable);
  CHECK(poll.wait(0ms) == result::readable);
}

TEST_CASE("waking counts before the wait too, and once", "[io][input_poll]") {
  const wire from;
  input_poll poll(from.read_end());
  for (int i = 0; i < 100000; ++i) poll.wake();  // more than a pipe holds
  CHECK(poll.wait(std::nullopt) == result::woken);
  CHECK(poll.wait(0ms) == result::timed_out);
}

TEST_CASE("an error of poll(2) is thrown, not retried without end", "[io][input_poll]") {
  CHECK_THROWS_AS(input_poll(-1), std::system_error);
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  WARN(
      "AddressSanitizer needs descriptors when something is thrown: only the constructor is "
      "tested");
  return;
#endif
#endif
  const auto result = test::in_forked_copy([] {
    const wire from;
    input_poll poll(from.read_end());
    rlimit usual{};
    ::getrlimit(RLIMIT_NOFILE, &usual);
    const rlimit few{1, usual.rlim_max};  // fewer descriptors than are waited for
    if (::setrlimit(RLIMIT_NOFILE, &few) == -1) return 4;
    int outcome = 3;
    try {
      static_cast<void>(poll.wait(std::nullopt));
    } catch (const std::system_error& error) {
      outcome = error.code() == std::errc::invalid_argument ? 0 : 2;
    }
    ::setrlimit(RLIMIT_NOFILE, &usual);  // a sanitizer opens files at exit
    return outcome;
  });
  CHECK(result.status == 0);
}

namespace {

/// A pipe whose input a reactor on a shared loop reads.
class watched_pipe {
 public:
  explicit watched_pipe(event_loop& loop)
      : reactor_(pipe_.read_end(), 0, {.readable = [this] { read(); }, .timer = [](std::size_t) {}},
                 &loop) {}
  reactor& input() { return reactor_; }
  void write() const { REQUIRE(::write(pipe_.write_end(), "x", 1) == 1); }
  [[nodiscard]] int bytes_read() const { return read_; }

 private:
  void read() {
    if (!has_input(pipe_.read_end())) return;
    char byte = 0;
    REQUIRE(::read(pipe_.read_end(), &byte, 1) == 1);
    ++read_;
  }

  test::open_pipe pipe_;
  int read_ = 0;
  reactor reactor_;
};

}  // namespace

TEST_CASE("an input that has left the loop is not read, and another one is", "[io][reactor]") {
  event_loop loop;
  watched_pipe leaving(loop);
  watched_pipe coming(loop);
  leaving.input().resume();
  loop.context.poll();

  // The loop finds the one ready before it hears that this one leaves, and that the other comes.
  leaving.write();
  boost::asio::post(loop.context, [&] { leaving.input().leave_loop(); });
  coming.input().resume();
  loop.context.poll();
  CHECK(leaving.bytes_read() == 0);

  coming.write();
  loop.context.poll();
  CHECK(coming.bytes_read() == 1);
}

}  // namespace kclxx::io

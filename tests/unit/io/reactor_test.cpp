// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#include <cstddef>
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "io/event_loop.hpp"
#include "io/input_poll.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

namespace kclxx::io {

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

// SPDX-License-Identifier: Apache-2.0
#include "runtime/line_input.hpp"

#include <string_view>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/descriptors.hpp"

namespace kclxx::runtime {

namespace {

struct filled_by_each_line final : line_sink {
  void on_line(driver::line_decoder::outcome) override {
    ++lines;
    is_filled = true;
  }
  void on_end_of_input(bool unfinished_line, int) override { ends.push_back(unfinished_line); }
  [[nodiscard]] bool is_full() const override { return is_filled; }
  [[nodiscard]] bool is_over() const override { return false; }
  int lines = 0;
  bool is_filled = false;
  std::vector<bool> ends;  // whether they were in a line
};

void write(const test::open_pipe& pipe, std::string_view text) {
  REQUIRE(::write(pipe.write_end(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

}  // namespace

TEST_CASE("lines that a full sink held back are known as such until they are delivered",
          "[line_input]") {
  filled_by_each_line sink;
  const test::open_pipe pipe;
  write(pipe, "{\"action\":\"a\"}\n{\"action\":\"b\"}\n{\"acti");
  line_input input(pipe.read_end(), 1000, sink);
  CHECK_FALSE(input.is_held_back());
  CHECK(input.on_readable() == line_input::state::open);
  CHECK(sink.lines == 1);
  sink.is_filled = false;  // by then nobody sees from the sink that a line is left
  CHECK(input.is_held_back());
  input.on_resumed();
  CHECK(sink.lines == 2);
  sink.is_filled = false;
  input.on_resumed();  // a part of a line is left, which is not held back
  CHECK(input.is_ahead());
  CHECK_FALSE(input.is_held_back());
}

TEST_CASE("a line over the limit that a full sink held back ends the input", "[line_input]") {
  filled_by_each_line sink;
  const test::open_pipe pipe;
  write(pipe, "{\"action\":\"a\"}\n{\"action\":\"a name over the limit\"}\n");
  line_input input(pipe.read_end(), 20, sink);
  CHECK(input.on_readable() == line_input::state::open);
  sink.is_filled = false;
  CHECK(input.on_resumed() == line_input::state::ended);
  CHECK(sink.lines == 2);
}

TEST_CASE("the end waits for the lines that a full sink held back", "[line_input]") {
  filled_by_each_line sink;
  test::open_pipe pipe;
  write(pipe, "{\"action\":\"a\"}\n{\"action\":\"b\"}\n");
  pipe.close_write_end();
  line_input input(pipe.read_end(), 1000, sink);
  CHECK(input.on_readable() == line_input::state::open);
  CHECK(input.on_readable() == line_input::state::open);
  CHECK(sink.lines == 1);
  sink.is_filled = false;
  input.on_resumed();
  sink.is_filled = false;
  CHECK(sink.ends.empty());
  CHECK(input.on_readable() == line_input::state::ended);
  CHECK(sink.lines == 2);
  CHECK(sink.ends == std::vector<bool>{false});
}

}  // namespace kclxx::runtime

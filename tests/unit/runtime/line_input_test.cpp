// SPDX-License-Identifier: Apache-2.0
#include "runtime/line_input.hpp"

#include <string>
#include <string_view>
#include <unistd.h>
#include <variant>
#include <vector>

#include "support/catch.hpp"
#include "support/descriptors.hpp"

namespace kclxx::runtime {

namespace {

using strings = std::vector<std::string>;
using decoder = driver::line_decoder;

void write(const test::open_pipe& pipe, std::string_view text) {
  REQUIRE(::write(pipe.write_end(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
}

/// What next() gives until there is no more.
strings lines_of(line_input& input) {
  strings lines;
  while (const auto line = input.next()) {
    if (const auto* decoded = std::get_if<decoder::decoded>(&*line)) {
      lines.push_back(decoded->message.action);
    } else if (const auto* end = std::get_if<decoder::end>(&*line)) {
      lines.emplace_back(end->is_in_line ? "end in a line" : "end");
    } else {
      lines.emplace_back("bad");
    }
  }
  return lines;
}

}  // namespace

TEST_CASE("lines are given one by one, and the end after the last one", "[line_input]") {
  test::open_pipe pipe;
  line_input input(pipe.read_end(), 1000);
  CHECK(lines_of(input).empty());
  write(pipe, "{\"action\":\"a\"}\n{\"action\":\"b\"}\n{\"acti");
  input.read();
  CHECK(lines_of(input) == strings{"a", "b"});
  const auto [rest, last] = GENERATE(table<std::string, strings>({
      {"on\":\"c\"}\n", {"c", "end"}},
      {"on\":\"c\"}", {"c", "end"}},  // of a file written by hand
      {"on\":", {"end in a line"}},
  }));
  write(pipe, rest);
  pipe.close_write_end();
  input.read();
  strings lines = lines_of(input);
  if (!input.has_ended()) {
    input.read();
    for (const std::string& line : lines_of(input)) lines.push_back(line);
  }
  CHECK(lines == last);
  CHECK(input.has_ended());
  CHECK_FALSE(input.next());
}

TEST_CASE("a line over the limit is the last one", "[line_input]") {
  const test::open_pipe pipe;
  write(pipe, "{\"action\":\"a\"}\n{\"action\":\"a name over the limit\"}\n");
  line_input input(pipe.read_end(), 20);
  input.read();
  CHECK(lines_of(input) == strings{"a", "bad"});
  CHECK(input.has_ended());
}

}  // namespace kclxx::runtime

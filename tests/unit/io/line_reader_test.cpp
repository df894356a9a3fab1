// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <csignal>
#include <cstdint>
#include <fcntl.h>
#include <new>
#include <optional>
#include <pthread.h>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include "io/lines.hpp"
#include "support/catch.hpp"
#include "support/descriptors.hpp"

namespace kclxx::io {

namespace {

constexpr std::size_t no_limit = std::size_t{1} << 30;
constexpr std::size_t first_capacity = std::size_t{64} << 10;

/// A pipe with a line_reader at its end.
struct reader_pipe : test::open_pipe {
  explicit reader_pipe(std::size_t limit = no_limit) : reader(limit) {
    ::fcntl(read_end(), F_SETFL, O_NONBLOCK);
  }
  void write(std::string_view text) const {
    if (::write(write_end(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("write");
    }
  }
  void block() const { ::fcntl(read_end(), F_SETFL, 0); }

  read_result read() { return reader.read_from(read_end(), error); }

  std::optional<std::string> next() {
    std::size_t length = 0;
    if (!reader.next_line(line, length)) return std::nullopt;
    return std::string(line.data(), length);
  }
  std::optional<std::string> rest() {
    std::size_t length = 0;
    if (!reader.unfinished(line, length)) return std::nullopt;
    return std::string(line.data(), length);
  }
  /// Writes the text in such pieces, reads after each, and gives all lines.
  std::vector<std::string> lines_of(std::string_view text, std::size_t piece) {
    std::vector<std::string> result;
    for (; !text.empty(); text.remove_prefix(std::min(piece, text.size()))) {
      write(text.substr(0, piece));
      while (read() == read_result::data) {
        while (auto found = next()) result.push_back(*found);
      }
    }
    return result;
  }

  line_reader reader;
  line_buffer line;
  int error = -1;
};

using lines = std::vector<std::string>;

}  // namespace

TEST_CASE("lines are the same however the stream is cut into pieces", "[io][line_reader][P7]") {
  using namespace std::string_view_literals;
  // A carriage return belongs to the line unless the newline follows.
  constexpr std::string_view text =
      "{\"action\":\"initialize\"}\n\nx\r\n\r\na\rb\n\nc\r\r\n\0\nd\0e\nlonger than those\n"sv;
  const lines expected{"{\"action\":\"initialize\"}",
                       "",
                       "x",
                       "",
                       "a\rb",
                       "",
                       "c\r",
                       {"\0", 1},
                       {"d\0e", 3},
                       "longer than those"};
  for (std::size_t piece = 1; piece <= text.size(); ++piece) {
    CHECK(reader_pipe().lines_of(text, piece) == expected);
  }
}

TEST_CASE("a line of exactly the limit is given, one byte more is over the limit",
          "[io][line_reader]") {
  SECTION("exactly, in one read") {
    reader_pipe input(5);
    CHECK(input.lines_of("12345\n1\n", 100) == lines{"12345", "1"});
    CHECK_FALSE(input.reader.over_limit());
  }
  SECTION("exactly, before its newline is there") {
    reader_pipe input(5);
    CHECK(input.lines_of("12345", 100).empty());
    CHECK_FALSE(input.reader.over_limit());
    CHECK(input.lines_of("\n", 100) == lines{"12345"});
  }
  SECTION("over, without a newline") {
    reader_pipe input(5);
    CHECK(input.lines_of("123456", 1).empty());
    CHECK(input.reader.over_limit());
    CHECK(input.rest() == "123456");
  }
  SECTION("over, with its newline in the same read") {
    reader_pipe input(5);
    CHECK(input.lines_of("1\n123456\n2\n", 100) == lines{"1"});
    CHECK(input.reader.over_limit());
    CHECK(input.rest().value_or("").substr(0, 6) == "123456");
  }
}

TEST_CASE("nothing there yet is neither data nor an end", "[io][line_reader]") {
  reader_pipe input;
  CHECK(input.read() == read_result::would_block);
  CHECK(input.error == 0);
  CHECK_FALSE(input.next());
}

TEST_CASE("two buffers serve 10,000 lines in lockstep without growing", "[io][line_reader]") {
  reader_pipe input;
  std::set<const char*> addresses;
  for (int i = 0; i < 10000; ++i) {
    const std::string text =
        "line " + std::to_string(i) + std::string(static_cast<std::size_t>(i % 500), '.');
    REQUIRE(input.lines_of(text + "\n", text.size() + 1) == lines{text});
    addresses.insert(input.line.data());
    REQUIRE(input.line.capacity() <= first_capacity);
  }
  CHECK(addresses.size() <= 2);
}

TEST_CASE("a lent buffer takes over what was read, if it is larger", "[io][line_reader]") {
  reader_pipe to;
  line_buffer large;
  large.grow(10 * first_capacity);
  const char* memory = large.data();
  CHECK(to.reader.could_use_memory());
  to.write("one\nbegin");
  CHECK(to.read() == read_result::data);
  CHECK(to.next() == "one");
  to.reader.lend(large);
  CHECK(large.capacity() < 10 * first_capacity);
  to.reader.lend(large);
  to.write("ning\n");
  CHECK(to.read() == read_result::data);
  CHECK(to.next() == "beginning");
  CHECK(to.line.data() == memory);
}

TEST_CASE("after every line the padding is writable", "[io][line_reader]") {
  reader_pipe input;
  const std::string text(first_capacity - 1, 'x');
  input.write(text.substr(0, 60000));
  input.read();
  input.next();
  input.write(text.substr(60000) + "\n");
  input.read();
  std::size_t length = 0;
  REQUIRE(input.reader.next_line(input.line, length));
  REQUIRE(length == text.size());
  std::fill_n(input.line.data() + length, line_buffer::padding, '\0');
  CHECK(input.line.capacity() >= length);
}

TEST_CASE("memory is given back only when no unread byte is in it", "[io][line_reader]") {
  reader_pipe input;
  input.write("first\nrest");
  input.read();
  CHECK(input.next() == "first");
  input.reader.release_memory();
  CHECK(input.lines_of(" of it\n", 100) == lines{"rest of it"});
  input.reader.release_memory();
  CHECK(input.lines_of("again\n", 100) == lines{"again"});
}

namespace {

std::atomic<int> interruptions{0};
extern "C" void count_interruption(int) { ++interruptions; }

}  // namespace

TEST_CASE("a signal handler that interrupts a read goes unnoticed", "[io][line_reader]") {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = count_interruption;
  ::sigaction(SIGUSR1, &action, &before);
  reader_pipe input;
  input.block();
  read_result result = read_result::would_block;
  std::thread reading([&] { result = input.read(); });
  while (interruptions < 20) {
    ::pthread_kill(reading.native_handle(), SIGUSR1);
    std::this_thread::yield();
  }
  input.write("line\n");
  reading.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  CHECK(result == read_result::data);
  CHECK(input.next() == "line");
}

TEST_CASE("a line's memory begins on a page, however large it grows", "[io][line_buffer]") {
  line_buffer buffer;
  for (const std::size_t capacity : {std::size_t{1}, first_capacity, 20 * first_capacity}) {
    buffer.grow(capacity);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096 == 0);
    CHECK(buffer.capacity() == capacity);
  }
}

TEST_CASE("a line longer than all memory is refused", "[io][line_buffer]") {
  line_buffer buffer;
  buffer.grow(10);
  CHECK_THROWS_AS(buffer.grow(static_cast<std::size_t>(-1) / 2), std::bad_alloc);
  CHECK_THROWS_AS(buffer.grow(static_cast<std::size_t>(-1)), std::bad_alloc);
  CHECK(buffer.capacity() == 10);
}

TEST_CASE("a line buffer keeps its contents when it grows and when it moves", "[io][line_buffer]") {
  line_buffer first;
  CHECK(first.capacity() == 0);
  first.grow(10);
  std::string_view("0123456789").copy(first.data(), 10);
  first.grow(10 << 20);
  CHECK(std::string_view(first.data(), 10) == "0123456789");
  line_buffer second(std::move(first));
  line_buffer third;
  third = std::move(second);
  CHECK(std::string_view(third.data(), 10) == "0123456789");
  third.release();
  CHECK(third.capacity() == 0);
  CHECK(third.data() == nullptr);
}

}  // namespace kclxx::io

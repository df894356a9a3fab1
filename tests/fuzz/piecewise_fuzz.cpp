// SPDX-License-Identifier: Apache-2.0
// The daemon's bytes may be split anywhere into reads: what comes of a line is the same as when it
// is decoded whole. Each byte 1 of the input ends a read; it is not part of the stream.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <sanitizer/asan_interface.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "fuzz/expect.hpp"
#include "io/lines.hpp"
#include "support/decoded_line.hpp"

namespace {

using namespace kclxx;

constexpr char end_of_read = '\1';
constexpr std::size_t most_input = 16384;
// A line buffer has at least this.
constexpr std::size_t least_capacity = std::size_t{64} << 10;

/// Hides what follows the padding from a reader of line[0, size): it lies in a larger buffer.
class fence {
 public:
  fence(const char* line, std::size_t size)
      : from_(line + size + protocol::decoder::padding),
        size_(least_capacity - size - protocol::decoder::padding) {
    ASAN_POISON_MEMORY_REGION(from_, size_);
  }
  ~fence() { ASAN_UNPOISON_MEMORY_REGION(from_, size_); }
  fence(const fence&) = delete;
  fence& operator=(const fence&) = delete;

 private:
  const char* from_;
  std::size_t size_;
};

std::vector<std::string> whole_lines(const std::string& stream) {
  std::vector<std::string> lines;
  for (std::size_t at = 0;;) {
    const std::size_t newline = stream.find('\n', at);
    if (newline == std::string::npos) return lines;
    std::string line = stream.substr(at, newline - at);
    if (line.ends_with('\r')) line.pop_back();
    lines.push_back(std::move(line));
    at = newline + 1;
  }
}

/// As runtime/input.cpp reads, but reading ahead from the first byte on.
class piecewise_input {
 public:
  explicit piecewise_input(const std::string& stream) : expected_(whole_lines(stream)) {
    expect(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) == 0, "there is a socket");
  }
  ~piecewise_input() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  piecewise_input(const piecewise_input&) = delete;
  piecewise_input& operator=(const piecewise_input&) = delete;

  void read(std::string_view piece) {
    if (piece.empty()) return;
    expect(::write(ends_[1], piece.data(), piece.size()) == static_cast<ssize_t>(piece.size()),
           "the socket takes a piece");
    int error = 0;
    expect(reader_.read_from(ends_[0], error) == io::read_result::data, "the piece is read");
    std::size_t length = 0;
    while (reader_.next_line(line_, length)) deliver(length);
    const auto arriving = reader_.arriving();
    if (arriving.empty()) return;
    const fence around(arriving.data(), arriving.size());
    decoder_.read_ahead(arriving.data(), arriving.size(), arriving_.batch, arriving_.arena);
  }

  void expect_all_delivered() const { expect(delivered_ == expected_.size(), "every line came"); }

 private:
  void deliver(std::size_t length) {
    expect(delivered_ < expected_.size(), "no line came twice");
    test::decoding got = std::exchange(arriving_, {});
    {
      const fence around(line_.data(), length);
      got.result = decoder_.decode(line_.data(), length, got.batch, got.arena, got.has_replaced);
    }
    static protocol::decoder whole;
    const std::string found =
        test::difference(got, test::decoded_line(expected_[delivered_++], whole));
    expect(found.empty(), found.c_str());
  }

  int ends_[2] = {-1, -1};
  io::line_reader reader_{most_input};
  io::line_buffer line_;
  protocol::decoder decoder_;
  test::decoding arriving_;
  std::vector<std::string> expected_;
  std::size_t delivered_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > most_input) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  std::string stream(input);
  stream.erase(std::remove(stream.begin(), stream.end(), end_of_read), stream.end());
  piecewise_input with(stream);
  for (std::size_t at = 0; at < input.size();) {
    const std::size_t end = std::min(input.find(end_of_read, at), input.size());
    with.read(input.substr(at, end - at));
    at = end + 1;
  }
  with.expect_all_delivered();
  return 0;
}

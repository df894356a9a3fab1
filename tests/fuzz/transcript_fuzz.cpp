// SPDX-License-Identifier: Apache-2.0
// Any bytes may be given as a transcript: entries come out, then the end or one error; and entries
// that are written again read the same. How the bytes arrive in pieces makes no difference.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "fuzz/expect.hpp"
#include "tool/transcript/transcript.hpp"

namespace {

using namespace kclxx::transcript;

class pieces final : public byte_source {
 public:
  pieces(std::string_view bytes, std::size_t size) : rest_(bytes), size_(size) {}
  std::size_t read(char* target, std::size_t size) override {
    const std::size_t n = std::min({size, size_, rest_.size()});
    std::memcpy(target, rest_.data(), n);
    rest_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view rest_;
  std::size_t size_;
};

class memory final : public byte_sink {
 public:
  void write(std::span<const std::string_view> all) override {
    for (const std::string_view one : all) bytes.append(one);
  }
  std::string bytes;
};

struct seen {
  std::vector<std::string> entries;
  std::string error;
  bool operator==(const seen&) const = default;
};

/// What is in the bytes; with times it is also written again.
seen read_all(std::string_view bytes, std::size_t piece, memory& copy) {
  seen result;
  writer again(copy);
  try {
    pieces source(bytes, piece);
    reader from(source, "fuzz", std::size_t{1} << 20);
    if (from.head()) again.write(*from.head());
    for (entry one; from.next(one);) {
      result.entries.push_back(
          std::to_string(static_cast<int>(one.kind)) + ":" + std::to_string(one.number) + ":" +
          std::to_string(one.at ? one.at->count() : -1) + ":" + std::string(one.line));
      if (from.head()) again.write(one);
    }
  } catch (const transcript_error& error) {
    result.error = error.what();
    expect(!result.error.empty(), "an error has a text");
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  memory copy;
  memory same;
  const seen whole = read_all(bytes, bytes.size() + 1, copy);
  expect(whole == read_all(bytes, 7, same) && copy.bytes == same.bytes,
         "the pieces make no difference");
  if (copy.bytes.empty()) return 0;
  memory third;
  const seen again = read_all(copy.bytes, copy.bytes.size(), third);
  expect(again.error.empty() && again.entries == whole.entries, "what is written reads the same");
  expect(third.bytes == copy.bytes, "and is written the same");
  return 0;
}

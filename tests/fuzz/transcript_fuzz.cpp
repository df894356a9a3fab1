// SPDX-License-Identifier: Apache-2.0
// Any bytes may be given as a transcript: entries come out, then the end or one error; and entries
// that are written again read the same. How the bytes arrive in pieces makes no difference.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fuzz/expect.hpp"
#include "support/transcript_memory.hpp"
#include "tool/transcript/transcript.hpp"

namespace {

using namespace kclxx::transcript;
using kclxx::test::memory_sink;
using kclxx::test::memory_source;

struct seen {
  std::vector<std::string> entries;
  std::string error;
  bool operator==(const seen&) const = default;
};

/// What is in the bytes; with times it is also written again.
seen read_all(const std::string& bytes, std::size_t piece, memory_sink& copy) {
  seen result;
  writer again(copy);
  try {
    memory_source source(bytes, piece);
    reader from(source, "fuzz", std::size_t{1} << 20);
    if (from.head()) again.write(*from.head());
    for (entry item; from.next(item);) {
      result.entries.push_back(
          std::to_string(static_cast<int>(item.kind)) + ":" + std::to_string(item.number) + ":" +
          std::to_string(item.at ? item.at->count() : -1) + ":" + std::string(item.line));
      if (from.head()) again.write(item);
    }
  } catch (const transcript_error& error) {
    result.error = error.what();
    expect(!result.error.empty(), "an error has a text");
  }
  return result;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  memory_sink copy;
  memory_sink same;
  const seen whole = read_all(bytes, bytes.size() + 1, copy);
  expect(whole == read_all(bytes, 7, same) && copy.text() == same.text(),
         "the pieces make no difference");
  const std::string written = copy.text();
  if (written.empty()) return 0;
  memory_sink third;
  const seen again = read_all(written, written.size(), third);
  expect(again.error.empty() && again.entries == whole.entries, "what is written reads the same");
  expect(third.text() == written, "and is written the same");
  return 0;
}

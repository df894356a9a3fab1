// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/memory_stream.hpp"
#include "tool/transcript/transcript.hpp"

using namespace kclxx::test;
using namespace kclxx::transcript;
using std::chrono::microseconds;

namespace {

entry line_from(entry_kind kind, std::string_view line, int at = 0) {
  entry entry;
  entry.at = microseconds(at);
  entry.kind = kind;
  entry.line = line;
  return entry;
}

std::string written(const entry& entry, bool is_unfinished = false) {
  memory_sink sink;
  writer(sink).write(entry, is_unfinished);
  REQUIRE(sink.writes.size() == 1);
  return sink.text();
}

}  // namespace

TEST_CASE("the header is one line, in this order", "[transcript]") {
  memory_sink sink;
  writer to(sink);
  to.write(header{"shardId-0", "2026-11-21T07:00:00.123456Z", {"./child", "a \"b\""}});
  to.write(header{std::nullopt, "", {"\xFF"}});
  CHECK(
      sink.text() ==
      R"({"kclxx_transcript":1,"shard":"shardId-0","started":"2026-11-21T07:00:00.123456Z","command":["./child","a \"b\""]})"
      "\n"
      "{\"kclxx_transcript\":1,\"shard\":null,\"started\":\"\",\"command\":[\"\xEF\xBF\xBD\"]}\n");
}

TEST_CASE("an object is written unchanged, anything else as text or bytes", "[transcript]") {
  CHECK(written(line_from(entry_kind::daemon_line,
                          R"({"a" : "\u00e9 )"
                          "\xFF\"}",
                          7)) == R"({"at":7,"from":"daemon","line":{"a" : "\u00e9 )"
                                 "\xFF\"}}\n");
  CHECK(written(line_from(entry_kind::child_line, "say \"h\xC3\xA9\"\r")) ==
        "{\"at\":0,\"from\":\"child\",\"text\":\"say \\\"h\xC3\xA9\\\"\\r\"}\n");
  CHECK(written(line_from(entry_kind::child_line, "")) ==
        "{\"at\":0,\"from\":\"child\",\"text\":\"\"}\n");
  CHECK(written(line_from(entry_kind::child_line, "\xFF\xFE")) ==
        "{\"at\":0,\"from\":\"child\",\"bytes\":\"//4=\"}\n");
}

TEST_CASE("a line that never got its newline is text", "[transcript]") {
  CHECK(written(line_from(entry_kind::child_line, "{}"), true) ==
        "{\"at\":0,\"from\":\"child\",\"text\":\"{}\"}\n");
}

TEST_CASE("of a line that was too long the beginning is recorded, with the length of the whole",
          "[transcript]") {
  entry cut = line_from(entry_kind::child_line, "{}");
  cut.whole_length = 3'000'000;
  CHECK(written(cut) == "{\"at\":0,\"from\":\"child\",\"length\":3000000,\"text\":\"{}\"}\n");
  cut.line = "\xFF";
  CHECK(written(cut) == "{\"at\":0,\"from\":\"child\",\"length\":3000000,\"bytes\":\"/w==\"}\n");
  memory_source source(R"({"kclxx_transcript":1,"shard":null,"started":"","command":[]})"
                       "\n" +
                       written(cut));
  reader from(source, "file");
  entry read;
  REQUIRE(from.next(read));
  CHECK(read.line == "\xFF");
  CHECK(read.whole_length == 3'000'000);
}

TEST_CASE("each entry is one write, and reads back as it was", "[transcript]") {
  memory_sink sink;
  writer to(sink);
  to.write(header{"shardId-0", "now", {"./child"}});
  std::vector<entry> entries{line_from(entry_kind::daemon_line, R"({"action":"initialize"})", 1),
                             line_from(entry_kind::child_line, "", 2),
                             line_from(entry_kind::child_line, "\x01 stray \xC3\xA9", 3),
                             line_from(entry_kind::child_line, std::string_view("\xFF\0x", 3), 4),
                             line_from(entry_kind::child_line, "{", 5),
                             line_from(entry_kind::child_line, R"({"x":1}{"y":{}})", 6),
                             line_from(entry_kind::end_of_input, "", 7),
                             line_from(entry_kind::end_of_output, "", 8),
                             line_from(entry_kind::exit, "", 9),
                             line_from(entry_kind::killed, "", 10)};
  entries[8].number = 10;
  entries[9].number = 11;
  for (const entry& entry : entries) to.write(entry);
  CHECK(sink.writes.size() == 1 + entries.size());
  memory_source source(sink.text());
  reader from(source, "file");
  for (const entry& expected : entries) {
    entry entry;
    REQUIRE(from.next(entry));
    CHECK(entry.at == expected.at);
    CHECK(entry.kind == expected.kind);
    CHECK(entry.line == expected.line);
    CHECK(entry.number == expected.number);
  }
  entry entry;
  CHECK_FALSE(from.next(entry));
}

TEST_CASE("times are written in UTC with microseconds", "[transcript]") {
  using namespace std::chrono;
  CHECK(format_time(system_clock::time_point(microseconds(0))) == "1970-01-01T00:00:00.000000Z");
  CHECK(format_time(system_clock::time_point(microseconds(1'795'244'400'000'042))) ==
        "2026-11-21T07:00:00.000042Z");
}

TEST_CASE("the shard is known from initialize alone", "[transcript]") {
  CHECK(initialized_shard(R"({"action":"initialize","shardId":"shardId-3"})") == "shardId-3");
  for (const char* line : {R"({"action":"leaseLost","shardId":"x"})", R"({"action":"initialize"})",
                           R"({"action":"initialize","shardId":3})", "initialize", ""}) {
    CAPTURE(line);
    CHECK(initialized_shard(line) == std::nullopt);
  }
}

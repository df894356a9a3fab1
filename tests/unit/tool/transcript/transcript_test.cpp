// SPDX-License-Identifier: Apache-2.0
// Transcripts in memory, read and written.
#include "tool/transcript/transcript.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/transcript_memory.hpp"

using namespace kclxx::transcript;
using kclxx::test::memory_sink;
using kclxx::test::memory_source;
using std::chrono::microseconds;

namespace {

const std::string head =
    R"({"kclxx_transcript":1,"shard":"shardId-7","started":"2026-11-21T07:00:00.123456Z","command":["./child","-v"]})"
    "\n";

/// The entries as texts, and after them the error, if there was one.
std::vector<std::string> read_all(const std::string& text, std::size_t piece = std::string::npos,
                                  std::size_t max_line = reader::default_max_line) {
  std::vector<std::string> entries;
  memory_source source(text, piece);
  try {
    reader from(source, "file", max_line);
    entry entry;
    while (from.next(entry)) {
      const char* kinds[] = {"daemon", "child", "exit", "killed", "end_of_input", "end_of_output"};
      entries.push_back(std::to_string(entry.line_number) + " " +
                        (entry.at ? std::to_string(entry.at->count()) : "-") + " " +
                        kinds[static_cast<int>(entry.kind)] + " " + std::string(entry.line) +
                        (entry.number != 0 ? std::to_string(entry.number) : ""));
    }
  } catch (const transcript_error& error) {
    entries.emplace_back(error.what());
  }
  return entries;
}

using lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a transcript is read entry by entry, however it arrives", "[transcript]") {
  const auto piece = GENERATE(as<std::size_t>(), 1, 7, 64, 100000);
  const std::string text = head + R"({"at":0,"from":"daemon","line":{"action":"initialize"}})"
                                  "\n"
                                  R"({"at":12,"from":"child","text":"a \"stray\" \u00e9\n"})"
                                  "\n"
                                  R"({"at":13,"from":"child","text":""})"
                                  "\n"
                                  R"({"at":14,"from":"child","bytes":"/wA="})"
                                  "\n"
                                  R"({"at":20,"from":"child","line":{"action":"status"}})"
                                  "\n"
                                  R"({"at":30,"event":"end_of_input"})"
                                  "\n"
                                  R"({"at":31,"event":"end_of_output"})"
                                  "\n"
                                  R"({"at":32,"event":"exit","status":3})"
                                  "\n"
                                  R"({"at":33,"event":"exit","signal":9})"
                                  "\n";
  CHECK(read_all(text, piece) == lines{R"(2 0 daemon {"action":"initialize"})",
                                       "3 12 child a \"stray\" \xC3\xA9\n", "4 13 child ",
                                       std::string("5 14 child \xFF\0", 13),
                                       R"(6 20 child {"action":"status"})", "7 30 end_of_input ",
                                       "8 31 end_of_output ", "9 32 exit 3", "10 33 killed 9"});
}

TEST_CASE("the header is read, also when it has no shard", "[transcript]") {
  memory_source source(head);
  CHECK(reader(source, "file").head() ==
        header{"shardId-7", "2026-11-21T07:00:00.123456Z", {"./child", "-v"}});
  memory_source without_shard(R"({"kclxx_transcript":1,"shard":null,"started":"","command":[]})"
                              "\n");
  CHECK(reader(without_shard, "file").head() == header{std::nullopt, "", {}});
}

TEST_CASE("spaces after : and , are read as json.dumps of python writes them", "[transcript]") {
  CHECK(read_all(R"({"kclxx_transcript": 1, "shard": null, "started": "x", "command": []})"
                 "\n"
                 R"({"at": 1, "from": "daemon", "line": {"action": "leaseLost"}})"
                 "\n"
                 R"({"at": 2, "from": "child", "text": "x"})"
                 "\n"
                 R"({"at": 3, "event": "exit", "status": 10})"
                 "\n") ==
        lines{R"(2 1 daemon {"action": "leaseLost"})", "3 2 child x", "4 3 exit 10"});
}

TEST_CASE("blanks around a line and empty lines are ignored, as the child ignores them",
          "[transcript]") {
  CHECK(read_all("\r\n {\"action\":\"initialize\"}\t\r\n \n"
                 "\t{\"action\":\"leaseLost\"} \r\n\r\n ") ==
        lines{"2 - daemon {\"action\":\"initialize\"}", "4 - daemon {\"action\":\"leaseLost\"}"});
  CHECK(read_all("\r\n" + head.substr(0, head.size() - 1) + "\r\n\n" +
                 R"({"at":1,"from":"daemon","line": {"action":"leaseLost"} } )" + "\r\n" +
                 R"({"at":2,"event":"exit","status":3 })" + "\r\n") ==
        lines{R"(4 1 daemon {"action":"leaseLost"})", "5 2 exit 3"});
  CHECK(read_all(" \r\n\n") == lines{"file:1: the file is empty"});
}

TEST_CASE("JSON that is nested too deep, or has too large a number, is refused by its place",
          "[transcript]") {
  for (const std::string field : {"kclxx_transcript", "shard", "command", "more"}) {
    CAPTURE(field);
    const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
    CHECK(read_all("{\"" + field + "\":" + deep + "}\n")
              .at(0)
              .ends_with("is nested deeper than 100 levels"));
    CHECK(
        read_all("{\"" + field + "\":1e900}\n").at(0).ends_with("has a number that is too large"));
  }
}

TEST_CASE("a file of the daemon's lines alone is read, without times", "[transcript]") {
  CHECK(read_all("{\"action\":\"initialize\"}\n{\"action\":\"leaseLost\"}\n") ==
        lines{R"(1 - daemon {"action":"initialize"})", R"(2 - daemon {"action":"leaseLost"})"});
  CHECK(read_all("{\"shardId\":\"a\", \"action\":\"initialize\"}\n").front().starts_with("1 - "));
  CHECK(read_all("{\"action\":\"initialize\"}\noops\n").back() ==
        "file:2: is not a line of the daemon: a JSON object was expected");
  CHECK(read_all("{\"action\":\"initialize\"}\n{\"action\":\"pro").back() ==
        "file:2: is cut off: the file ends without a newline");
}

TEST_CASE("what is not a transcript is refused with the file's name and the line", "[transcript]") {
  CHECK(read_all("") == lines{"file:1: the file is empty"});
  const std::string neither =
      "file:1: is neither a transcript's header nor a line of the daemon (an object with "
      "\"action\")";
  for (const char* text : {"[]\n", "{}\n"}) CHECK(read_all(text) == lines{neither});
  for (const char* text : {"hello\n", "{\"action\"\n", "\xFF\xFE{}\n"}) {
    CAPTURE(text);
    CHECK(
        read_all(text).at(0).starts_with(neither + ": it is no JSON: wrong or cut off at line 1"));
  }
  CHECK(read_all("{\"kclxx_transcript\":2}\n") ==
        lines{"file:1: is of version 2; this kclxx reads version 1"});
  CHECK(read_all("{\"kclxx_transcript\":\"1\"}\n") ==
        lines{"file:1: is of version \"1\"; this kclxx reads version 1"});
  CHECK(read_all("{\"kclxx_transcript\":1,\"shard\":3}\n") ==
        lines{"file:1: the header's \"shard\" is no text"});
  CHECK(read_all("{\"kclxx_transcript\":1,\"started\":\"x\",\"command\":[1]}\n") ==
        lines{"file:1: the header's \"command\" is no list of texts"});
}

TEST_CASE("a damaged line is an error after everything before it was read", "[transcript]") {
  const std::string good = R"({"at":0,"from":"daemon","line":{}})"
                           "\n";
  const auto error_of = [&](const std::string& line) {
    const lines entries = read_all(head + good + line + "\n" + good);
    REQUIRE(entries.size() == 2);
    CHECK(entries.front() == "2 0 daemon {}");
    REQUIRE(entries.back().starts_with("file:3: "));
    return entries.back().substr(8);
  };
  const std::string no_beginning = "does not begin with {\"at\":<microseconds>,";
  CHECK(error_of(R"({"at":9223372036854775807,"from":"daemon","line":{}})") ==
        "\"at\" is more than 100 years after the beginning");
  CHECK(error_of(R"({"at":1e300,"from":"daemon","line":{}})") == no_beginning);
  CHECK(error_of("nonsense") == no_beginning);
  CHECK(error_of(R"({"from":"daemon","at":0,"line":{}})") == no_beginning);
  CHECK(error_of(R"({"at":-1,"from":"daemon","line":{}})") == no_beginning);
  CHECK(error_of(R"({"at":1.5,"from":"daemon","line":{}})") == no_beginning);
  CHECK(error_of(R"({"at":99999999999999999999,"from":"daemon","line":{}})") == no_beginning);
  CHECK(error_of(R"({"at":0,"line":{}})") == "\"at\" is not followed by \"from\" or \"event\"");
  CHECK(error_of(R"({"at":0,"from":"me","line":{}})") ==
        "\"from\" is neither \"daemon\" nor \"child\"");
  CHECK(error_of(R"({"at":0,"from":"child"})") ==
        "\"from\" is not followed by \"line\", \"text\" or \"bytes\"");
  const std::string line_error = "\"line\" is not an object, or something comes after it";
  CHECK(error_of(R"({"at":0,"from":"child","line":"x"})") == line_error);
  CHECK(error_of(R"({"at":0,"from":"child","line":})") == line_error);
  CHECK(error_of(R"({"at":0,"from":"child","line":{})") == line_error);  // one brace is lost
  CHECK(error_of(R"({"at":0,"from":"child","line":{},"more":1})") == line_error);
  CHECK(error_of(R"({"at":0,"from":"child","line":{},"mo)") ==
        "is damaged: it does not end with }");
  CHECK(error_of(R"({"at":0,"from":"child","text":"x","more":1})") ==
        "\"text\" is not a string, or something comes after it");
  CHECK(error_of(R"({"at":0,"from":"child","text":"x)") == "is damaged: it does not end with }");
  CHECK(error_of(R"({"at":0,"from":"child","bytes":"?"})") ==
        "\"bytes\" is not base64, or something comes after it");
  CHECK(error_of(R"({"at":0,"from":"child","bytes":"AAA=","more":"x"})") ==
        "\"bytes\" is not base64, or something comes after it");
  CHECK(error_of(R"({"at":0,"from":"child","bytes":1})") ==
        "\"bytes\" is not a string, or something comes after it");
  CHECK(error_of(R"({"at":0,"from":"child","length":"3","text":"x"})") ==
        "\"length\" is not a number");
  CHECK(error_of(R"({"at":0,"from":"child","length":3,"line":{}})") ==
        "\"length\" does not belong to \"line\"");
  CHECK(error_of(R"({"at":0,"from":"daemon","length":3,"text":"x"})") ==
        "the line was too long to be recorded");
  CHECK(error_of(R"({"at":0,"event":"boom"})") ==
        "\"event\" is none of \"exit\", \"end_of_input\", \"end_of_output\"");
  const std::string event_error = "the event is damaged, or something comes after it";
  CHECK(error_of(R"({"at":0,"event":"exit"})") == event_error);
  CHECK(error_of(R"({"at":0,"event":"exit","status":-3})") == event_error);
  CHECK(error_of(R"({"at":0,"event":"exit","status":0,"more":1})") == event_error);
  CHECK(error_of(R"({"at":0,"event":"end_of_input","more":1})") == event_error);
}

TEST_CASE("a transcript that was cut off anywhere is read up to its last complete line",
          "[transcript]") {
  const std::string whole = head + R"({"at":0,"from":"daemon","line":{"action":"initialize"}})"
                                   "\n"
                                   R"({"at":5,"event":"exit","status":0})"
                                   "\n";
  for (std::size_t size = 1; size < whole.size(); ++size) {
    CAPTURE(size);
    const std::string text = whole.substr(0, size);
    const auto complete = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
    const lines entries = read_all(text, 13);
    if (text.back() == '\n') {
      CHECK(entries.size() == complete - 1);  // one complete line is the header
    } else {
      CHECK(entries.size() == (complete == 0 ? 0 : complete - 1) + 1);
      CHECK(entries.back() == "file:" + std::to_string(complete + 1) +
                                  ": is cut off: the file ends without a newline");
    }
  }
}

TEST_CASE("a line may be as long as the limit, and no longer", "[transcript]") {
  const std::string line =
      R"({"at":0,"from":"daemon","line":{"x":")" + std::string(500, 'x') + "\"}}";
  CHECK(read_all(head + line + "\n", 100, line.size()).size() == 1);
  CHECK(read_all(head + line + "\n", 100, line.size() - 1) ==
        lines{"file:2: is longer than the limit on lines"});
}

TEST_CASE("long lines between short ones are handed out whole", "[transcript]") {
  std::string text = head;
  std::vector<std::size_t> sizes{10, 3'000'000, 1, 262'144, 700'000, 2, 262'143};
  for (const std::size_t size : sizes) {
    text += R"({"at":0,"from":"daemon","line":{)" + std::string(size, 'x') + "}}\n";
  }
  memory_source source(text, 250'000);
  reader from(source, "file");
  entry entry;
  for (const std::size_t size : sizes) {
    REQUIRE(from.next(entry));
    CHECK((entry.line == "{" + std::string(size, 'x') + "}"));
  }
  CHECK_FALSE(from.next(entry));
}

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

TEST_CASE("an object is written unchanged, and any other line as text or bytes", "[transcript]") {
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

TEST_CASE("the beginning of a line that was too long is recorded, with the length of the whole",
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
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  for (const std::string& line :
       lines{R"({"action":"leaseLost","shardId":"x"})", R"({"action":"initialize"})",
             R"({"action":"initialize","shardId":3})",
             R"({"action":"initialize","shardId":)" + deep + "}", "initialize", ""}) {
    CAPTURE(line);
    CHECK(initialized_shard(line) == std::nullopt);
  }
}

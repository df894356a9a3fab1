// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_result.hpp"

#include <sstream>
#include <string>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "tool/replay/summary.hpp"
#include "tool/text.hpp"

using namespace kclxx;
using kclxx::test::Contains;
using replay::replay_result;

namespace {

replay_result one_shard() {
  replay_result result;
  result.shards.resize(1);
  return result;
}

std::string text_of(std::size_t breaches) {
  replay_result result = one_shard();
  for (std::size_t i = 0; i < breaches; ++i) {
    result.shards[0].summary.breaches.add(i + 1, "a status that nobody waits for");
  }
  std::ostringstream out;
  print_text(out, result);
  return out.str();
}

}  // namespace

TEST_CASE("a summary has the number of the diagnostics that it does not show", "[tool][replay]") {
  const std::size_t shown = replay::diagnostics::max_kept;
  CHECK_THAT(text_of(shown), !Contains("more\n"));
  CHECK_THAT(text_of(shown + 7), Contains("... and 7 more\n"));
}

TEST_CASE("no text from outside ends the report's data, or can be obeyed by its reader",
          "[tool][report]") {
  const std::string hostile =
      GENERATE("</script><script>alert(1)</script>", "<!--<script>", "a\x1b[2Jb\x7f", "\u202eabc",
               "\u2028", "\xff\xfe", "&lt;b&gt;", "\"'\\");
  CAPTURE(hostile);
  replay_result result = one_shard();
  replay::summary& shard = result.shards[0].summary;
  shard.shard = hostile;
  shard.breaches.add(1, hostile, hostile);
  shard.timeline.add({hostile});
  std::ostringstream out;
  print_report(out, result);
  const std::string page = out.str();
  const std::string begin = R"(<script type="application/json">)";
  const std::size_t at = page.find(begin) + begin.size();
  const std::string json = page.substr(at, page.find("</script>", at) - at);
  CHECK_THAT(json, !Contains("<"));
  for (const char character : json) CHECK((character >= ' ' && character < 0x7f));
  const auto data = nlohmann::json::parse(json);
  const std::string expected = tool::printable(hostile);
  CHECK(data["shards"][0]["shard"] == expected);
  CHECK(data["shards"][0]["rows"][0][0] == expected);
  CHECK_THAT(data["summary"].get<std::string>(), Contains("child: " + expected));
}

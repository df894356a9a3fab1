// SPDX-License-Identifier: Apache-2.0
// kclxx replay --report: the page.
#include <algorithm>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "process/replayed.hpp"
#include "support/catch.hpp"
#include "tool/files.hpp"

using namespace kclxx::test;

namespace {

/// What the page's script draws.
nlohmann::json data_of(const std::string& page) {
  const std::string begin = R"(<script type="application/json">)";
  const std::size_t at = page.find(begin) + begin.size();
  return nlohmann::json::parse(page.substr(at, page.find("</script>", at) - at));
}

}  // namespace

TEST_CASE("the report is one page that needs nothing from anywhere", "[replay][report]") {
  replayed tool;
  const std::string page_file = tool.file("report.html", "");
  const std::string fine = tool.dialogue(4, shard_ended);
  const std::string both =
      tool.file("both.jsonl", with_both_sides({"", "ThrottlingException", ""}));
  const auto result = tool.run({"--report", page_file, fine, both}, {"checkpoint", "2:print"});
  CHECK(result.status == 1);
  const std::string page = read_file(page_file);
  for (const char* outside : {"http:", "https:", "src=", "href=", "url(", "@import"}) {
    CAPTURE(outside);
    CHECK(page.find(outside) == std::string::npos);
  }
  const nlohmann::json data = data_of(page);
  CHECK(data["summary"] == result.out);
  REQUIRE(data["shards"].size() == 2);
  const auto value = [&](std::size_t row, const std::string& column) {
    const auto& columns = data["columns"];
    const auto at = std::find(columns.begin(), columns.end(), column) - columns.begin();
    return data["shards"][1]["rows"][row][static_cast<std::size_t>(at)];
  };
  CHECK(data["shards"][1]["shard"] == "shardId-000000000007");
  CHECK(data["shards"][1]["rows"].size() == 4);
  CHECK(value(0, "action") == "initialize");
  CHECK(value(0, "callback").is_null());
  CHECK(value(2, "action") == "processRecords");
  CHECK(value(2, "callback") > 0);
  CHECK(value(2, "end") > value(2, "begin"));
  CHECK(value(2, "delivered") == 6);
  CHECK(value(3, "persisted") == 9);
  CHECK(value(2, "checkpoints") == 2);
  CHECK(value(2, "failed") == 1);
  CHECK(tool.run({"--report", "/no/such/directory/x.html", fine}, {}).status == 5);
}

TEST_CASE("a report replaces an older report and nothing else", "[replay][report]") {
  replayed tool;
  const std::string transcript = tool.dialogue(2);
  const auto size = std::filesystem::file_size(transcript);
  CHECK(tool.run({"--report", transcript, transcript}, {}).status == 5);
  CHECK(std::filesystem::file_size(transcript) == size);
  const std::string other_page = tool.file("report.html", "<!DOCTYPE html>\n<html>\n");
  CHECK(tool.run({"--report", other_page, transcript}, {}).status == 5);
  CHECK(read_file(other_page) == "<!DOCTYPE html>\n<html>\n");
  const std::string page_file = tool.file("report.html", "");
  for (int i = 0; i < 2; ++i) {
    CHECK(tool.run({"--report", page_file, transcript}, {}).status == 0);
    CHECK(std::filesystem::file_size(page_file) > 100);
  }
}

TEST_CASE("a report that cannot be written is named, with the reason, after the summary",
          "[replay][report]") {
  replayed tool;
  const auto full = tool.run({"--report", "/dev/full", tool.dialogue(1)}, {});
  CHECK(full.err == "kclxx replay: /dev/full cannot be written: No space left on device\n");
  CHECK_THAT(full.out, Contains("3 in 1 batches"));
  CHECK(full.status == 5);
}

TEST_CASE("a result keeps the permissions of the one before it, and the link to it", "[tool]") {
  replayed place;
  namespace fs = std::filesystem;
  const fs::path report = place.file("report.html", "<!DOCTYPE html>old");
  const fs::path link = fs::path(report).replace_filename("link.html");
  fs::permissions(report, fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("report.html", link);
  kclxx::tool::result_file result(link, "<!DOCTYPE");
  result.stream() << "<!DOCTYPE html>new";
  result.commit();
  CHECK(fs::is_symlink(link));
  CHECK(read_file(report) == "<!DOCTYPE html>new");
  CHECK(fs::status(report).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("only its owner can read a new result", "[tool]") {
  replayed place;
  const std::filesystem::path name =
      std::filesystem::path(place.file("other", "")).replace_filename("report.html");
  kclxx::tool::result_file result(name, "<!DOCTYPE");
  result.commit();
  using std::filesystem::perms;
  CHECK(std::filesystem::status(name).permissions() == (perms::owner_read | perms::owner_write));
}

// SPDX-License-Identifier: Apache-2.0
#include "support/kept_folder.hpp"

using namespace kclxx::test;
namespace fs = std::filesystem;

namespace {

std::vector<std::string> feed(const std::string& folder) {
  return {"feed", "--state", folder, "--", "child"};
}

std::vector<std::string> capture(const std::string& folder) {
  return {"capture", "--output", folder, "--", "child"};
}

}  // namespace

TEST_CASE("a folder that others can change is refused before something is kept there",
          "[folders]") {
  check_folders_of_others(GENERATE(folder_command(feed), folder_command(capture)));
}

TEST_CASE("in a sticky folder each file that is trusted is the user's own", "[folders]") {
  const kept_folder box;
  fs::permissions(box / "kept", fs::perms(01777));
  SECTION("of feed") {
    // A child that answers, and checkpoints at the end.
    box.program("bin/child",
                "while read -r line; do case $line in\n"
                "*initialize*) action=initialize ;;\n"
                "*processRecords*) action=processRecords ;;\n"
                "*) action=shutdownRequested\n"
                "  echo '{\"action\":\"checkpoint\",\"sequenceNumber\":null}'; read -r line ;;\n"
                "esac; echo '{\"action\":\"status\",\"responseFor\":\"'$action'\"}'; done\n");
    box.program("bin/feeder", "echo 1 | exec \"$@\"\n");
    const auto fed =
        box.start({"feeder", KCLXX_TOOL, "feed", "--state", "kept", "--", "child"}).result();
    CAPTURE(fed.out, fed.err);
    REQUIRE(fed.status == 0);
    const auto names = box.list("kept");
    REQUIRE(names.size() == 2);
    for (const std::string& name : names) box.check_file_refused(feed, name);
  }
  SECTION("and of capture there is none") { CHECK(box.kclxx(capture("kept")).status == 0); }
}

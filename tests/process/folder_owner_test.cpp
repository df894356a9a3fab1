// SPDX-License-Identifier: Apache-2.0
// The folders in which the tool keeps something, or of which it trusts what is there.
#include <filesystem>
#include <functional>
#include <string>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/tool.hpp"

using namespace kclxx::test;
namespace fs = std::filesystem;

namespace {

/// The arguments of a command that uses this folder.
using folder_command = std::function<std::vector<std::string>(const std::string& folder)>;

void give_away(const fs::path& path) {
  constexpr uid_t another_user = 65534;
  REQUIRE(::lchown(path.c_str(), another_user, another_user) == 0);
}

/// The folder `kept`. What a command would start leaves `started`.
struct kept_folder : sandbox {
  kept_folder() {
    fs::create_directory(*this / "kept");
    program("bin/child", "touch \"$HOME/started\"\n");
  }

  void check_refused(const folder_command& command, const std::string& message,
                     const std::string& folder = "kept") const {
    const auto refused = kclxx(command(folder));
    CAPTURE(message);
    CHECK(refused.status == 5);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, Contains(message));
    CHECK(count(refused.err, "\n") == 1);
    CHECK_FALSE(fs::exists(*this / "started"));
  }

  /// A file of the folder that others can write, or own.
  void check_file_refused(const folder_command& command, const std::string& name) const {
    CAPTURE(name);
    const fs::path file = *this / ("kept/" + name);
    if (!fs::exists(file)) write("kept/" + name, "{}");
    fs::permissions(file, fs::perms(0666));
    check_refused(command, name + " can be written by other users");
    fs::permissions(file, fs::perms(0600));
    if (::geteuid() != 0) return;
    give_away(file);
    check_refused(command, name + " belongs to the user 65534");
    REQUIRE(::chown(file.c_str(), 0, 0) == 0);
  }
};

/// In a test case: a section for each way in which others can change a folder.
void check_folders_of_others(const folder_command& command) {
  const kept_folder box;
  SECTION("by its mode") {
    const auto added = GENERATE(fs::perms::group_write, fs::perms::others_write);
    fs::permissions(box / "kept", added, fs::perm_options::add);
    box.check_refused(command, "kept can be written by other users: chmod go-w it");
    // Under a link to it, too.
    fs::create_symlink("kept", box / "link");
    box.check_refused(command, "link can be written by other users", "link");
    CHECK(fs::is_empty(box / "kept"));
  }
  if (::geteuid() != 0) {
    WARN("only root gives folders and links away");
    return;
  }
  SECTION("by its owner") {
    give_away(box / "kept");
    box.check_refused(command, "kept belongs to the user 65534: make it yours (chown)");
    CHECK(fs::is_empty(box / "kept"));
  }
  SECTION("by the owner of a link to it") {
    fs::create_symlink("kept", box / "link");
    give_away(box / "link");
    box.check_refused(command, "link belongs to the user 65534", "link");
    CHECK(fs::is_empty(box / "kept"));
  }
}

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

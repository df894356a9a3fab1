// SPDX-License-Identifier: Apache-2.0
// The folders in which the tool keeps something, or of which it trusts what is there.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

#include "support/catch.hpp"
#include "support/tool.hpp"

namespace kclxx::test {

/// The arguments of a command that uses this folder.
using folder_command = std::function<std::vector<std::string>(const std::string& folder)>;

inline void give_away(const std::filesystem::path& path) {
  constexpr uid_t another_user = 65534;
  REQUIRE(::lchown(path.c_str(), another_user, another_user) == 0);
}

/// The folder `kept`. What the commands would start leaves `started`.
struct kept_folder : sandbox {
  kept_folder() {
    std::filesystem::create_directory(*this / "kept");
    for (const char* name : {"bin/child", "bin/node"}) program(name, "touch \"$HOME/started\"\n");
  }

  void check_refused(const folder_command& command, const std::string& message,
                     const std::string& folder = "kept") const {
    const auto refused = kclxx(command(folder));
    CAPTURE(message);
    CHECK(refused.status == 5);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, Contains(message));
    CHECK(count(refused.err, "\n") == 1);
    CHECK_FALSE(std::filesystem::exists(*this / "started"));
  }

  /// A file of the folder that others can write, or own.
  void check_file_refused(const folder_command& command, const std::string& name) const {
    namespace fs = std::filesystem;
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
inline void check_folders_of_others(const folder_command& command) {
  namespace fs = std::filesystem;
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
  SECTION("by its owner") {
    if (::geteuid() != 0) {
      WARN("only root gives folders away");
      return;
    }
    give_away(box / "kept");
    box.check_refused(command, "kept belongs to the user 65534: make it yours (chown)");
    CHECK(fs::is_empty(box / "kept"));
  }
  SECTION("by the owner of a link to it") {
    if (::geteuid() != 0) {
      WARN("only root gives links away");
      return;
    }
    fs::create_symlink("kept", box / "link");
    give_away(box / "link");
    box.check_refused(command, "link belongs to the user 65534", "link");
    CHECK(fs::is_empty(box / "kept"));
  }
}

}  // namespace kclxx::test

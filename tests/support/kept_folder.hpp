// SPDX-License-Identifier: Apache-2.0
// Tests of the folders in which the tool keeps something, or whose content it trusts.
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

/// A sandbox with the folder `kept`, and a program for the command to start, which leaves
/// `started`.
struct kept_folder : sandbox {
  explicit kept_folder(const std::string& program_name = "child") {
    std::filesystem::create_directory(*this / "kept");
    program("bin/" + program_name, "touch \"$HOME/started\"\n");
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

  /// Checks that the command refuses a file of the folder that other users can write, or own.
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

/// Has a section for each way in which other users can change a folder. The command would start the
/// program of this name.
inline void check_folders_of_others(const folder_command& command,
                                    const std::string& program_name = "child") {
  namespace fs = std::filesystem;
  const kept_folder box(program_name);
  SECTION("by its mode") {
    const auto added = GENERATE(fs::perms::group_write, fs::perms::others_write);
    fs::permissions(box / "kept", added, fs::perm_options::add);
    box.check_refused(command, "kept can be written by other users: chmod go-w it");
    // The command refuses a link to the folder, too.
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

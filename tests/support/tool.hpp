// SPDX-License-Identifier: Apache-2.0
// Runs the kclxx tool with programs of the test's own in PATH.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "support/forked.hpp"
#include "support/temporary_folder.hpp"
#include "support/text.hpp"  // IWYU pragma: export

namespace kclxx::test {

/// A directory for a run of the tool: its working directory and its HOME. The folder `bin` in it
/// comes first in PATH. The destructor removes everything.
class sandbox {
 public:
  sandbox() { std::filesystem::create_directory(path_ / "bin"); }

  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const {
    return path_ / name;
  }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  /// Makes a program of the shell.
  void program(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    std::filesystem::permissions(path_ / name, std::filesystem::perms(0755));
  }
  [[nodiscard]] std::string read(const std::string& name) const { return read_file(path_ / name); }
  /// The names in a directory, with hidden ones.
  [[nodiscard]] std::vector<std::string> list(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_ / name)) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }

  /// Starts a program in this directory. `environment`: variables in addition, "NAME=value".
  [[nodiscard]] forked_copy start(const std::vector<std::string>& command,
                                  const std::vector<std::string>& environment = {},
                                  int input = -1) const {
    return forked_copy(
        [&] {
          become(command, environment);
          return 98;
        },
        input);
  }
  /// Runs kclxx with these arguments to its end.
  [[nodiscard]] forked_result kclxx(std::vector<std::string> arguments,
                                    const std::vector<std::string>& environment = {},
                                    int input = -1) const {
    arguments.insert(arguments.begin(), KCLXX_TOOL);
    return start(arguments, environment, input).result();
  }
  /// Runs kclxx with these arguments where nothing is mounted on /proc. CTest reports the test as
  /// skipped if this user cannot have mounts of its own.
  [[nodiscard]] forked_result kclxx_without_proc(const std::vector<std::string>& arguments,
                                                 int input = -1) const {
    std::vector<std::string> mount{"unshare", "--mount"};
    if (::geteuid() != 0) mount.emplace_back("--map-root-user");
    mount.insert(mount.end(), {"sh", "-c", "mount -t tmpfs none /proc && exec \"$@\"", "sh"});
    const auto in_namespace = [&](std::vector<std::string> command) {
      command.insert(command.begin(), mount.begin(), mount.end());
      return command;
    };
    if (start(in_namespace({"true"})).result().status != 0) std::_Exit(77);
    std::vector<std::string> command{KCLXX_TOOL};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return start(in_namespace(command), {}, input).result();
  }
  /// Runs a program as start() does, in place of this process. Returns when it cannot be started.
  void become(std::vector<std::string> command,
              const std::vector<std::string>& environment = {}) const {
    for (const char* name : {"XDG_CACHE_HOME", "XDG_STATE_HOME"}) ::unsetenv(name);
    ::setenv("PATH", ((path_ / "bin").string() + ":/usr/bin:/bin").c_str(), 1);
    ::setenv("HOME", path_.c_str(), 1);
    for (const std::string& text : environment) {
      const auto equals = text.find('=');
      ::setenv(text.substr(0, equals).c_str(), text.substr(equals + 1).c_str(), 1);
    }
    if (::chdir(path_.c_str()) == -1) return;
    std::vector<char*> pointers;
    for (std::string& text : command) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    ::execvp(pointers.front(), pointers.data());
  }

 private:
  temporary_folder folder_;
  const std::filesystem::path& path_ = folder_.path();
};

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/jar_checksums.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <sstream>
#include <string>

#include "tool/command.hpp"
#include "tool/process/shell.hpp"

namespace kclxx::tool {

namespace {

using checksums = std::map<std::string, std::string>;  // by the file's name

checksums parsed(std::string_view text) {
  std::istringstream lines{std::string(text)};
  checksums all;
  for (std::string hash, name; lines >> hash >> name;) all[name] = hash;
  all.erase("pom.xml");  // ours, and Maven's input
  return all;
}

checksums actual_checksums(const std::filesystem::path& folder) {
  const std::string command = "cd " + tool::shell_word(folder.string()) + " && sha256sum -- *";
  std::FILE* const output = ::popen(command.c_str(), "re");
  if (output == nullptr) cannot_set_up("sha256sum", "started");
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), output)) {
    text.append(piece.data(), size);
  }
  if (::pclose(output) != 0) cannot_set_up("sha256sum, of the package coreutils, failed");
  return parsed(text);
}

}  // namespace

void verify_jars(const std::filesystem::path& folder, std::string_view expected) {
  checksums actual = actual_checksums(folder);
  for (const auto& [name, hash] : parsed(expected)) {
    const auto found = actual.extract(name);
    if (found.empty()) cannot_set_up("mvn did not bring " + name);
    if (found.mapped() == hash) continue;
    cannot_set_up(name +
                  " does not have the expected SHA-256 checksum, so nothing was installed. " +
                  "Remove it from Maven's local repository; check the mirror it came from");
  }
  if (actual.empty()) return;
  cannot_set_up("mvn brought " + actual.begin()->first +
                ", which is not among the expected files, so nothing was installed");
}

}  // namespace kclxx::tool

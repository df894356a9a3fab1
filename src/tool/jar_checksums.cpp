// SPDX-License-Identifier: Apache-2.0
#include "tool/jar_checksums.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <optional>
#include <sstream>
#include <string>

#include "tool/atomic_file.hpp"
#include "tool/command_error.hpp"
#include "tool/process/shell.hpp"

namespace kclxx::tool {

namespace {

using checksums = std::map<std::string, std::string>;  // by the file's name

checksums parsed(std::string_view text) {
  std::istringstream lines{std::string(text)};
  checksums all;
  for (std::string hash, name; lines >> hash && std::getline(lines >> std::ws, name);) {
    all[name] = hash;
  }
  all.erase("pom.xml");  // ours, and Maven's input
  all.erase(checksum_file);
  return all;
}

// Of a command for sh.
std::string output_of(const std::filesystem::path& folder, const std::string& command) {
  const std::string whole = "cd " + shell_word(folder.string()) + " && " + command;
  std::FILE* const output = ::popen(whole.c_str(), "re");
  if (output == nullptr) cannot_set_up("sha256sum", "started");
  std::string text;
  std::array<char, 4096> piece{};
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), output)) {
    text.append(piece.data(), size);
  }
  if (::pclose(output) != 0) cannot_set_up("sha256sum, of the package coreutils, failed");
  return text;
}

struct jar_difference {
  enum class kind { missing, changed, unexpected };
  kind what;
  std::string name;  // of the first file that differs
};

/// Compares the files in a folder with the expected checksums. Nothing: they are the same.
std::optional<jar_difference> find_difference(const std::filesystem::path& folder,
                                              std::string_view expected) {
  checksums actual = parsed(checksums_of(folder));
  for (const auto& [name, hash] : parsed(expected)) {
    const auto found = actual.extract(name);
    if (found.empty()) return jar_difference{jar_difference::kind::missing, name};
    if (found.mapped() != hash) return jar_difference{jar_difference::kind::changed, name};
  }
  if (actual.empty()) return std::nullopt;
  return jar_difference{jar_difference::kind::unexpected, actual.begin()->first};
}

}  // namespace

std::string folder_checksum(const std::filesystem::path& folder) {
  const std::string line =
      output_of(folder,
                "find . -type f ! -path ./.package-lock.json -print0 | LC_ALL=C sort -z | "
                "xargs -0 sha256sum | sha256sum");
  return line.substr(0, line.find(' '));
}

std::string checksums_of(const std::filesystem::path& folder) {
  // With hidden ones: Java's class path FOLDER/* has them, too.
  const std::string text =
      output_of(folder, "find . -maxdepth 1 ! -type d -printf '%P\\0' | xargs -0 -r sha256sum --");
  std::string jars;
  for (const auto& [name, hash] : parsed(text)) jars.append(hash).append("  ").append(name) += '\n';
  return jars;
}

void expect_jars(const std::filesystem::path& folder, std::string_view checksums) {
  using kind = jar_difference::kind;
  const auto found = find_difference(folder, checksums);
  if (!found) return write_file(folder / checksum_file, checksums);
  if (found->what == kind::missing) cannot_set_up("mvn did not bring " + found->name);
  if (found->what == kind::unexpected) {
    cannot_set_up("mvn brought " + found->name +
                  ", which is not among the expected files, so nothing was installed");
  }
  cannot_set_up(found->name +
                " does not have the expected SHA-256 checksum, so nothing was installed. "
                "Remove it from Maven's local repository; check the mirror it came from");
}

void expect_as_fetched(const std::filesystem::path& folder, std::string_view expected,
                       const std::string& fetch) {
  const auto found = find_difference(folder, expected);
  if (!found) return;
  const char* const what = found->what == jar_difference::kind::missing   ? " is missing"
                           : found->what == jar_difference::kind::changed ? " was changed"
                                                                          : " was added";
  cannot_set_up(folder.string() + " is not as it was fetched: " + found->name + what +
                "; remove the folder, and fetch again: " + fetch);
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
// The versions of the KCL, and the daemon's jars.
#pragma once

#include <compare>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/embedded.hpp"

namespace kclxx::host {

/// The KCL's major versions, each with its own MultiLangDaemon.
enum class kcl_version { kcl2 = 2, kcl3 = 3 };

/// The versions of the two parts of a daemon: the KCL's core, and the daemon itself, which are
/// published one by one.
struct kcl_parts {
  std::string_view core;
  std::string_view daemon;
};

/// The versions that are fetched and tested with kclxx.
kcl_parts tested_parts(kcl_version kcl);

/// The KCL that a command is for.
struct kcl_choice {
  kcl_version which = kcl_version::kcl3;
  std::string core;  ///< empty: the tested one

  /// "3", or a version of the core like "3.2.0". Nothing: it is neither.
  static std::optional<kcl_choice> parse(std::string_view text);

  [[nodiscard]] std::string_view core_version() const;
  /// As it is written on a command line.
  [[nodiscard]] std::string text() const;
};

/// "3.5.1" < "3.10.0".
std::strong_ordering compare_versions(std::string_view version, std::string_view second);

/// "KCL 3.x".
std::string_view name_of(kcl_version kcl);

/// The Maven project with the daemon's jars.
const embedded::project& jars_of(kcl_version kcl);

/// Where the jars are: in a cache, or in a folder that the user names.
struct jar_place {
  std::string cache;  ///< empty: the user's
  std::string jars;   ///< empty: in the cache
};

/// The jars that were compared with their checksums (host/packages.hpp). Where no checksums are
/// known, for a version that was not tested with kclxx or a folder of the user's, all jars in the
/// folder. Our own jar (src/host/java) is among them where it was compiled. Errors: command_error.
std::vector<std::filesystem::path> jars_at(const jar_place& place, const kcl_choice& kcl);

/// The jar with what this program has in src/host/java; nothing: it is not there. `files` is then
/// without that of another kclxx.
std::optional<std::filesystem::path> own_jar_among(std::vector<std::filesystem::path>& files);

/// Whether a jar of ours agrees with its checksum, if that is beside it. Errors: command_error.
bool is_as_compiled(const std::filesystem::path& own_jar);

/// Whether the daemon among the files was tested, by its SHA-256: our writer of batches is for
/// tested daemons. Errors: command_error.
bool has_tested_daemon(const std::vector<std::filesystem::path>& files);

/// Brings the jars with Maven, unless they are there, and gives their folder. Of a version that is
/// not the tested one no checksums are known. Where there is a JDK it compiles src/host/java beside
/// them; otherwise a line says what is missing. Blocking: until Maven is done. Its output goes to
/// stderr. Errors: command_error.
std::filesystem::path fetch_jars(const std::string& cache, const kcl_choice& kcl);

}  // namespace kclxx::host

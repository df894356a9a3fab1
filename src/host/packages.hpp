// SPDX-License-Identifier: Apache-2.0
// What other programs bring: jars, by Maven, and a package of npm. What runs is what was compared
// with the checksums that this program carries.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "io/descriptor.hpp"

namespace kclxx::host {

/// A folder of the cache. `checksums` has each of its files but the one with the checksums.
struct package {
  std::string_view folder;     ///< its name there
  std::string_view checksums;  ///< as sha256sum writes them; empty: none are known
};

/// The name of the file with a folder's checksums. It lies among the files, so that a copy of the
/// folder has it, too.
inline constexpr const char* checksum_file = "SHA256SUMS";

/// What is kept where no folder is named: $XDG/kclxx, or ~/BELOW_HOME/kclxx.
/// Errors: command_error when neither variable is set.
std::filesystem::path user_folder(const char* xdg, const char* below_home);
inline std::filesystem::path default_cache() { return user_folder("XDG_CACHE_HOME", ".cache"); }

/// A lock that only this user can take: `folder`/.lock, which nobody else may open. A program that
/// this one starts or becomes keeps it.
/// Blocking: while another process has it, up to a quarter of an hour; a line says whom it waits
/// for. Errors: command_error.
io::descriptor lock_folder(const std::filesystem::path& folder);

/// The files of a package in the cache, in the order of their checksums. Without checksums: its
/// jars, by name.
/// Errors: command_error when the package is not there (then `fetch` brings it), when anything in
/// it is not as it was fetched, or when another user owns or can write the cache, the folder or a
/// file.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& cache,
                                            const package& wanted, const std::string& fetch);

/// The files of a folder that the user names, compared with the checksums in it. Without them: its
/// jars. Any user may own the folder. Errors: command_error.
std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder);

/// Brings a package into the cache unless it is there, and gives its files. `fill` puts them into
/// an empty folder, which takes its name once they are compared. Blocking: until it is there; see
/// lock_folder, too. Errors: command_error; nothing is left in the cache then.
std::vector<std::filesystem::path> fetch_package(
    const std::filesystem::path& cache, const package& wanted, const std::string& fetch,
    const std::function<void(const std::filesystem::path& folder)>& fill);

/// The name of a jar that this program compiles and puts beside fetched ones: kclxx-HASH.jar.
std::string own_jar(std::string_view hash);
bool is_own_jar(const std::filesystem::path& file);
/// Moves such a jar into a folder, after its checksum, since a jar counts only with its checksum.
/// From then on it is the last of the folder's files. Precondition: the cache is locked. Errors:
/// command_error.
void install_own_jar(const std::filesystem::path& jar, const std::filesystem::path& folder);

/// The SHA-256 of a file, in hexadecimal digits. Errors: command_error.
std::string hash_of(const std::filesystem::path& file);

/// Java: $JAVA_HOME/bin/java, or the one in PATH.
/// Errors: command_error with how to get one.
std::string find_java();

/// The jars among files, for Java's option -cp. Errors: command_error for a path with a colon.
std::string class_path(const std::vector<std::filesystem::path>& files);

// Both programs use the user's settings, mirrors and proxies. Their output goes to stderr, where
// `contents` is announced.
// Errors: command_error with how to get the program, or that it failed.

/// Has Maven bring the jars of a project into a folder. `output`: what Maven prints goes there, and
/// the result tells whether it succeeded.
bool run_maven(const std::filesystem::path& folder, std::string_view pom,
               const std::string& contents, std::string* output = nullptr);
/// Has npm bring what the package-lock.json of a folder names, without running scripts.
void run_npm(const std::filesystem::path& folder, const std::string& contents);

}  // namespace kclxx::host

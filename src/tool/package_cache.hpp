// SPDX-License-Identifier: Apache-2.0
// Folders of the user's with what other programs bring: jars, packages.
#pragma once

#include <filesystem>
#include <functional>

namespace kclxx::tool {

/// Where they are kept when no folder is named: $XDG_CACHE_HOME/kclxx, or ~/.cache/kclxx.
/// Errors: command_error when neither variable is set.
std::filesystem::path default_cache();

struct cached_folder {
  std::filesystem::path place;
  /// A folder has what was to be brought.
  std::function<bool(const std::filesystem::path&)> is_complete;
  /// Fills an empty folder, or throws.
  std::function<void(const std::filesystem::path&)> fill;
};

/// Fills the place, unless it is complete. It is filled beside its place and renamed once it is
/// complete: a process that is killed leaves a partial folder elsewhere, which the next call
/// removes. Several processes may call it at once. Blocking: until it is filled. Errors:
/// command_error.
void fetch_folder(const cached_folder& folder);

}  // namespace kclxx::tool

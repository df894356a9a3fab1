// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

namespace kclxx::io {

inline bool is_program(const char* path) {
  struct stat status {};
  return ::stat(path, &status) == 0 && S_ISREG(status.st_mode) && ::access(path, X_OK) == 0;
}

/// The path of the program that execvp would start for the name; null: there is none. A name
/// without a slash is looked up in PATH, and its path is written to `place`. Needs no C++ runtime.
inline const char* find_program(const char* name, std::array<char, PATH_MAX>& place) {
  const std::string_view text = name;
  if (text.empty()) return nullptr;
  if (text.find('/') != std::string_view::npos) return is_program(name) ? name : nullptr;
  const char* const path = std::getenv("PATH");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  std::string_view folders = path == nullptr ? "/bin:/usr/bin" : path;
  for (;;) {
    // Not substr, which can throw.
    const std::string_view folder(folders.data(), std::min(folders.find(':'), folders.size()));
    // An empty folder is the current one.
    const int size = std::snprintf(place.data(), place.size(), "%.*s/%s",
                                   folder.empty() ? 1 : static_cast<int>(folder.size()),
                                   folder.empty() ? "." : folder.data(), name);
    if (size > 0 && static_cast<std::size_t>(size) < place.size() && is_program(place.data())) {
      return place.data();
    }
    if (folder.size() == folders.size()) return nullptr;
    folders.remove_prefix(folder.size() + 1);
  }
}

}  // namespace kclxx::io

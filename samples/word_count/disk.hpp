// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

/// Files that are on the disk when a function returns. Errors: std::system_error.
namespace disk {

/// Calls a function of POSIX until no signal interrupts it.
template <class Call>
auto retry(Call call, const char* step, const std::filesystem::path& file) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), step + (" " + file.string()));
    }
  }
}

/// A descriptor that programs started by this one do not inherit.
int open(const std::filesystem::path& file, int flags);

/// Replaces a file as a whole: after a crash it has the old text or the new one.
void replace(const std::filesystem::path& file, const std::string& text);

/// After this, a file created or renamed there is found after a power failure, too.
void sync_directory_of(const std::filesystem::path& file);

}  // namespace disk

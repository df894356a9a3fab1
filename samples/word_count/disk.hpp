// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

/// Errors: std::system_error.
namespace disk {

/// An open file, which programs started by this one do not inherit.
class descriptor {
 public:
  descriptor(const std::filesystem::path& file, int flags);
  ~descriptor();
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor)

 private:
  int fd_;
};

/// Held by one process at a time, and no longer than it lives. The directory may be shared by
/// several machines if its file system has flock between them, an atomic rename, and shows a file
/// as its last writer left it (NFSv4 has these; most object stores that are mounted as a file
/// system do not).
class lock {
 public:
  /// Blocking: while another process has it.
  explicit lock(const std::filesystem::path& file);

 private:
  descriptor fd_;
};

/// Replaces a file as a whole: after a crash it has the old text or the new one. The new one is on
/// the disk when this returns.
void replace(const std::filesystem::path& file, const std::string& text);

}  // namespace disk

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

/// A lock that one process has at a time, until this object or the process ends. Several machines
/// may share the directory if its file system has flock between them and an atomic rename, and
/// shows a file as its last writer left it. NFSv4 has these. Most object stores that are mounted as
/// a file system do not.
class lock {
 public:
  /// Takes the lock. Blocking: while another process has it.
  explicit lock(const std::filesystem::path& file);

 private:
  descriptor fd_;
};

/// Replaces a file as a whole: after a crash it has the old text or the new text. The new text is
/// on the disk when this returns.
void replace(const std::filesystem::path& file, const std::string& text);

}  // namespace disk

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

/// Lets one writer at a time write a shard's files: who begins later shuts out all who began
/// before.
///
/// A file has the number of the last one who began, the epoch. It is compared and the data is
/// written under one lock, so the next writer cannot begin between the two. A process that is
/// suspended while it holds the lock delays the next one until it continues or is killed.
///
/// The directory may be shared by several hosts if its file system has flock between them, an
/// atomic rename, and shows a file as its last writer left it (NFSv4 has these; a mount with
/// local_lock, and most object stores that are mounted as a file system, do not).
class fence {
 public:
  /// Raises the epoch. Errors: std::system_error; std::runtime_error when the file is damaged.
  /// Blocking: while another process writes.
  explicit fence(std::filesystem::path file);
  ~fence();
  fence(const fence&) = delete;
  fence& operator=(const fence&) = delete;

  /// Calls `write` while nobody else can begin or write.
  /// Errors: kclxx::fenced_error when another one has begun since; what `write` throws.
  void guard(const std::function<void()>& write) const;

 private:
  class lock;
  [[nodiscard]] std::uint64_t read() const;

  std::filesystem::path file_;
  int fd_;
  std::uint64_t epoch_ = 0;
};

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

#include "fence.hpp"

/// The words of one shard and how far they were counted, kept in DIRECTORY/<shard>.counts.
///
/// The position is in the same file as the counts, which is replaced as a whole. So records that
/// are delivered again after a crash are recognised and not counted twice. A fence,
/// DIRECTORY/<shard>.epoch, refuses a process that has lost the shard and wakes up: the file would
/// go back to what that one knew.
class counts {
 public:
  /// Begins as the shard's writer, then reads the file if there is one.
  /// Errors: std::system_error; std::runtime_error when a file is damaged.
  counts(const std::filesystem::path& directory, const std::string& shard);

  /// Adds the words of a text: runs of ASCII letters, in lower case.
  void add(std::string_view text, const kclxx::sequence_position& position);

  /// Replaces the file, and returns when it is on the disk.
  /// Errors: std::system_error; kclxx::fenced_error when another process is the shard's writer.
  void flush() const;

  /// How far was counted; TRIM_HORIZON before the first record.
  [[nodiscard]] const kclxx::sequence_position& position() const { return position_; }

 private:
  void read();

  fence fence_;  // before the file is read
  std::filesystem::path file_;
  kclxx::sequence_position position_{"TRIM_HORIZON"};
  std::uint64_t records_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> words_;
};

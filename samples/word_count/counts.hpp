// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

/// The counts of one shard's words, and the position up to which they were counted, in a file that
/// is replaced as a whole.
class counts {
 public:
  /// Reads the file if there is one. Errors: std::runtime_error when it is damaged.
  explicit counts(std::filesystem::path file);

  /// Adds the words of a record: runs of ASCII letters, in lower case.
  void add(std::string_view text, const kclxx::sequence_position& position);

  /// Replaces the file, and returns when it is on the disk. Errors: std::system_error.
  void write() const;

  /// The position of the last record that was counted; TRIM_HORIZON before the first record.
  [[nodiscard]] const kclxx::sequence_position& position() const { return position_; }

 private:
  void read();

  std::filesystem::path file_;
  kclxx::sequence_position position_{"TRIM_HORIZON"};
  std::uint64_t records_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> words_;
};

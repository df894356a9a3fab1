// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

/// The words of one shard and how far they were counted, kept in a file.
///
/// The position is in the same file as the counts, which is replaced as a whole. So records that
/// are delivered again after a crash are recognised and not counted twice.
class counts {
 public:
  /// Reads the file if there is one. Errors: std::runtime_error when it is damaged.
  explicit counts(std::filesystem::path file);

  /// Adds the words of a text: runs of ASCII letters, in lower case.
  void add(std::string_view text, const kclxx::sequence_position& position);
  [[nodiscard]] bool has(const kclxx::sequence_position& position) const {
    return position_ && position <= *position_;
  }

  /// Replaces the file, and returns when it is on the disk. Errors: std::system_error.
  void flush() const;

  /// How far was counted; std::nullopt before the first record.
  [[nodiscard]] const std::optional<kclxx::sequence_position>& position() const {
    return position_;
  }

 private:
  void read();

  std::filesystem::path file_;
  std::optional<kclxx::sequence_position> position_;
  std::uint64_t records_ = 0;
  std::map<std::string, std::uint64_t, std::less<>> words_;
};

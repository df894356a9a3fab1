// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fnv.hpp"
#include "io/descriptor.hpp"

namespace kclxx::tool {

/// The first lines of a shard: how many there are, and a checksum that recognizes them.
struct covered_lines {
  std::uint64_t count = 0;
  std::uint64_t checksum = 0;

  void add(std::string_view line) {
    ++count;
    detail::fnv_hash hash(checksum);
    hash.add(line);
    hash.add("\n");  // so that lines are not taken for others with the same characters
    checksum = hash.value();
  }
  bool operator==(const covered_lines&) const = default;
};

/// The names of the shards of `kclxx feed`, and with --state the lines of each that earlier runs
/// have covered. The folder is locked against another feed.
///
/// Thread safety: store() may be called from different threads for different shards, the other
/// functions from one thread.
class feed_state {
 public:
  /// `folder`: empty without --state; then nothing is kept, and the names are new.
  /// `division`: the options that decide on the shard of a line, as one line of text.
  /// Errors: command_error when the folder is in use, of another division or another version.
  feed_state(std::string folder, const std::string& division);

  [[nodiscard]] bool is_kept() const noexcept { return !folder_.empty(); }
  [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
  /// "shardId-000000000003-5f0c9e2103ab". No other state has this name, and no run without a state.
  [[nodiscard]] std::string name_of_shard(std::uint64_t number) const;
  /// The lines that earlier runs have covered. Errors: command_error.
  [[nodiscard]] covered_lines covered(const std::string& shard) const;
  /// Blocking: until the file system has taken it. Errors: std::exception.
  void store(const std::string& shard, const covered_lines& covered) const;

 private:
  [[nodiscard]] std::string position_file(const std::string& shard) const;

  std::string folder_;
  io::descriptor lock_;
  std::string run_;  ///< random digits that end the names of the shards
};

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
// What a child leaves in files, with faults and without.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace kclxx::replay {

/// How often each line is there, in any order: shards that are played in parallel write in any.
using effect_lines = std::map<std::string, std::uint64_t>;

/// The lines of a file; of a directory, those of all its files, each after its file's name.
/// Errors: command_error when there is no such file.
effect_lines read_effects(const std::filesystem::path& folder);

struct effect_comparison {
  static constexpr std::size_t most_kept = 100;

  std::uint64_t same = 0;           ///< lines
  std::uint64_t lost_count = 0;     ///< only there without faults
  std::uint64_t extra_count = 0;    ///< only there with them, or more often
  std::vector<std::string> lost{};  ///< the first ones
  std::vector<std::string> extra{};
  std::string kept_in{};  ///< where both runs' directories are; empty when they were removed

  [[nodiscard]] bool is_same() const noexcept { return lost_count == 0 && extra_count == 0; }
};

effect_comparison compare_effects(const effect_lines& without_faults,
                                  const effect_lines& with_faults);

/// Two empty directories that only the user can read, for a run without faults and one with them.
/// They are removed at the end of its life, unless they are kept.
/// Errors: std::filesystem::filesystem_error, std::system_error.
class effect_directories {
 public:
  effect_directories();
  ~effect_directories();
  effect_directories(const effect_directories&) = delete;
  effect_directories& operator=(const effect_directories&) = delete;

  [[nodiscard]] std::filesystem::path without_faults() const { return root_ / "without-faults"; }
  [[nodiscard]] std::filesystem::path with_faults() const { return root_ / "with-faults"; }
  std::string keep();

  /// What stands for one of them in the child's command and in the name of the file.
  static constexpr std::string_view placeholder = "{dir}";
  static std::string replaced(const std::string& text, const std::filesystem::path& directory);

 private:
  std::filesystem::path root_;
  bool is_kept_ = false;
};

}  // namespace kclxx::replay

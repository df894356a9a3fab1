// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace kclxx::tool {

/// A new directory that only the user can read. Removed at the end of its life with all that is in
/// it, unless it is kept.
class temporary_directory {
 public:
  /// `use`: a word of its name.
  /// Errors: std::system_error when it cannot be made.
  explicit temporary_directory(std::string_view use);
  temporary_directory(const temporary_directory&) = delete;
  temporary_directory& operator=(const temporary_directory&) = delete;
  ~temporary_directory();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  void keep() noexcept { is_kept_ = true; }

 private:
  std::filesystem::path path_;
  bool is_kept_ = false;
};

}  // namespace kclxx::tool

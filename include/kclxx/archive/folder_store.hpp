// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kclxx/archive/store.hpp>

namespace kclxx::archive {

/// A folder of a file system that has hard links and locks nothing: a local one, NFS 4 mounted
/// `hard`, EFS, CephFS. Several hosts may share it. SMB and FAT have no hard links, S3 mounted by
/// FUSE neither: the constructor refuses them.
///
/// The folder is never made. When its path leads to another folder or nowhere, as after an unmount,
/// each function throws until it leads back. Name a folder inside of a mounted volume, not the
/// mount point: that one is there without the volume, too.
class folder_store final : public store {
 public:
  /// Opens the folder, and tries in it what the store needs.
  /// Errors: std::system_error when there is no such folder, and when it lacks hard links.
  explicit folder_store(const std::filesystem::path& folder);
  ~folder_store() override;

  void put(std::span<const object> objects) override;
  bool put_if_absent(const object& candidate) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
  void move(std::span<const renaming> renamings) override;
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const override;
  void remove(std::span<const std::string> names) override;

 private:
  [[nodiscard]] int root() const;

  std::filesystem::path path_;
  int root_;
};

}  // namespace kclxx::archive

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What the archive needs of an object store. Names have folders, separated by slashes. What a
/// function has done is durable when it returns.
/// Errors: std::system_error from each function; what it was to do may have been done.
/// Thread safety: any thread and any process may call all functions.
class store {
 public:
  store() = default;
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  virtual ~store() = default;

  /// Makes an object with a name that nobody else uses.
  virtual void put(const std::string& name, std::string_view content) = 0;
  /// Makes an object, unless there is one of that name. Returns whether this call has made it. In
  /// S3 it is a PutObject with `If-None-Match: *`.
  virtual bool put_if_absent(const std::string& name, std::string_view content) = 0;
  /// std::nullopt when there is none.
  [[nodiscard]] virtual std::optional<std::string> get(const std::string& name) const = 0;
  /// Gives an object its final name. Does nothing when there is none of the first name: then that
  /// was done before. In S3 it is a CopyObject and a DeleteObject.
  virtual void move(const std::string& name, const std::string& final_name) = 0;
  /// The objects of a folder.
  [[nodiscard]] virtual std::vector<std::string> list(const std::string& folder) const = 0;
  virtual void remove(const std::string& name) = 0;
};

/// A folder of the local file system, or of one that workers share and that has hard links.
class folder_store final : public store {
 public:
  /// The folder must exist.
  explicit folder_store(std::filesystem::path folder);

  void put(const std::string& name, std::string_view content) override;
  bool put_if_absent(const std::string& name, std::string_view content) override;
  [[nodiscard]] std::optional<std::string> get(const std::string& name) const override;
  void move(const std::string& name, const std::string& final_name) override;
  [[nodiscard]] std::vector<std::string> list(const std::string& folder) const override;
  void remove(const std::string& name) override;

 private:
  std::filesystem::path folder_;
};

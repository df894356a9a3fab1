// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <system_error>

#include "io/descriptor.hpp"

namespace kclxx::observability {

/// A file that is replaced as a whole: whoever reads it sees the old text or the new one. While
/// this object lives, the file has a write lock (F_OFD_SETLK), which tells another process, in
/// whatever pid namespace, that its writer lives. Whoever can only read the file cannot take it.
///
/// Thread safety: none. Blocking: as long as the file system.
class metrics_file {
 public:
  explicit metrics_file(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// Readable for all, whatever the umask is: node_exporter is another user.
  std::error_code write(std::string_view text);
  /// Only what this object has written: another process may have the shard meanwhile.
  void remove() noexcept;

 private:
  struct identity {
    dev_t device;
    ino_t number;
  };

  void remove_temporary_files() const;

  std::string path_;
  std::optional<identity> written_;
  io::descriptor lock_;
  bool has_swept_ = false;
};

}  // namespace kclxx::observability

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>

#include "io/descriptor.hpp"

namespace kclxx::tool {

/// Writes a whole file, in place.
/// Errors: command_error.
void write_file(const std::filesystem::path& path, std::string_view text);

/// A file for a command's results. It is written beside its name, under a name that is no other
/// process's, and takes its name with commit(), so that nothing half done, and no failure, replaces
/// an older one. Only its owner can read it, since results quote records and what a child wrote;
/// one in the place of an older one has that one's permissions. A symbolic link stays.
class atomic_file {
 public:
  /// `first_bytes`: what files of this kind begin with; a file that is there and is another, a
  /// transcript for instance, is not replaced.
  /// Errors: command_error.
  atomic_file(std::string name, std::string_view first_bytes);
  ~atomic_file();
  atomic_file(const atomic_file&) = delete;
  atomic_file& operator=(const atomic_file&) = delete;

  [[nodiscard]] std::ostream& stream() noexcept { return stream_; }
  /// Errors: command_error when not all could be written.
  void commit();

 private:
  void open();

  std::string name_;
  std::string part_;  // empty: it is written in place
  io::descriptor file_;
  std::ostringstream stream_;
};

}  // namespace kclxx::tool

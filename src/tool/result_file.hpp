// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "tool/process/descriptor.hpp"

namespace kclxx::cli {

/// A file for a command's results. It is written beside its name and takes it with commit(), so
/// that nothing half done, and no failure, replaces an older one.
class result_file {
 public:
  /// `first_bytes`: what files of this kind begin with; a file that is there and is another, a
  /// transcript for instance, is not replaced.
  /// Errors: command_error.
  result_file(std::string name, std::string_view first_bytes);
  ~result_file();
  result_file(const result_file&) = delete;
  result_file& operator=(const result_file&) = delete;

  [[nodiscard]] std::ostream& stream() noexcept { return stream_; }
  /// Errors: command_error when not all could be written.
  void commit();

 private:
  std::string name_;
  std::string part_;
  descriptor file_;
  std::ostringstream stream_;
};

}  // namespace kclxx::cli

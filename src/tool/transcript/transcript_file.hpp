// SPDX-License-Identifier: Apache-2.0
// Transcripts in files.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "io/descriptor.hpp"
#include "tool/transcript/byte_stream.hpp"

namespace kclxx::tool {

/// Makes a directory, with those above it. True when it was not there.
/// Errors: std::system_error, with its name.
bool make_directory(const std::string& name);

/// A file to read from.
/// Errors: std::system_error, with the file's name.
class input_file : public transcript::byte_source {
 public:
  /// "-" is stdin. Errors of reading: cancelled.
  explicit input_file(std::string name);
  ~input_file() override;
  std::size_t read(char* target, std::size_t size) override;

 private:
  struct readiness;

  std::string name_;
  io::descriptor file_;
  std::unique_ptr<readiness> readiness_;  // of what is not always ready, as a file is
};

/// All that a file has; "-" is stdin.
/// Errors: std::system_error, with the file's name.
std::string text_of_file(const std::string& name);

/// A new file to append to; one writev(2) for each write.
/// Errors: std::system_error, with the file's name.
class output_file : public transcript::byte_sink {
 public:
  enum class access { default_mode, owner };
  explicit output_file(std::string name, access readers = access::default_mode);
  void write(std::span<const std::string_view> pieces) override;
  /// Gives it another name in the same file system; one that is there already is replaced.
  void rename(const std::string& target);
  void remove() noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  io::descriptor file_;
};

}  // namespace kclxx::tool

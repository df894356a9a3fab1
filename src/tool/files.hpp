// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "io/descriptor.hpp"
#include "tool/transcript/transcript.hpp"

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

// Transcripts in files.

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

/// The most bytes of data that a record can have.
inline constexpr std::size_t max_payload = 10'485'760;

/// A file with a payload in each line, as --data takes it: the lines that are not blank, without
/// their ends. "-" is stdin. Errors: command_error, std::system_error with the file's name.
std::vector<std::string> read_payloads(const std::string& name);

}  // namespace kclxx::tool

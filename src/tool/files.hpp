// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/stat.h>
#include <vector>

#include "io/descriptor.hpp"
#include "tool/transcript/transcript.hpp"

namespace kclxx::tool {

/// Writes a whole file, in place.
/// Errors: command_error.
void write_file(const std::filesystem::path& path, std::string_view text);

/// Makes a file with this text, for its owner alone, or gives the file of this name that text:
/// whole or not at all. Errors: std::system_error, with the file's name.
void replace_file(const std::string& name, std::string_view text);

/// A file for a command's results, which are written at its end. Only its owner can read a new one,
/// since results quote records and what a child wrote.
class result_file {
 public:
  /// `first_bytes`: what files of this kind begin with; a file that is there and is another, a
  /// transcript for instance, is not written over.
  /// Errors: command_error.
  result_file(std::string name, std::string_view first_bytes);
  /// A new file without results is removed.
  ~result_file();
  result_file(const result_file&) = delete;
  result_file& operator=(const result_file&) = delete;

  [[nodiscard]] std::ostream& stream() noexcept { return stream_; }
  /// Errors: command_error when not all could be written.
  void commit();

 private:
  std::string name_;
  bool is_new_ = false;
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

/// What another user than this one and root could do with a file or a folder: "belongs to the user
/// 65534", "can be written by other users"; empty: nothing.
std::string access_of_others(const struct stat& status);
/// Before a command keeps something in a folder, or trusts what a file says: nobody else could have
/// put it there, or led it elsewhere by a link. What is not there is nobody's. In a sticky folder,
/// as /tmp is, others have their own files: there each file that is trusted is looked at, too.
/// Errors: command_error.
void require_own(const std::filesystem::path& path);

/// Makes a directory, with those above it, for its owner alone, unless it is there.
/// Errors: as make_directory(); command_error as require_own().
void make_private_directory(const std::string& name);

/// So many random digits, 0 to f: what makes a name that no other machine makes, either.
std::string random_digits(std::size_t count);
/// "20261121T070000Z-0123abcd": the time, and eight random digits.
std::string unique_name();

/// All that a file has; "-" is stdin.
/// Errors: std::system_error, with the file's name.
std::string text_of_file(const std::string& name);

/// A new file to append to, for its owner alone; one writev(2) for each write.
/// Errors: std::system_error, with the file's name.
class output_file : public transcript::byte_sink {
 public:
  explicit output_file(std::string name);
  void write(std::span<const std::string_view> pieces) override;
  /// Gives it another name in the same file system; one that is there already is replaced.
  void rename(const std::string& target);
  void remove() noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  io::descriptor file_;
};

/// The most bytes that a record of Kinesis can have, its data and its partition key together.
inline constexpr std::size_t max_record = 10'485'760;

/// A file with a payload in each line, as --data takes it: the lines that are not blank, without
/// their ends. "-" is stdin. Errors: command_error, std::system_error with the file's name.
std::vector<std::string> read_payloads(const std::string& name);

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <set>
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

/// Makes a file with this text, for its owner alone. It takes the place of an older file in one
/// step, so that a reader finds one of the two texts whole. Errors: std::system_error, with the
/// name.
void replace_file(const std::string& name, std::string_view text);

/// A file for the results of a command, which are written at its end. Only its owner can read a new
/// file, since results quote records and what a child wrote.
class result_file {
 public:
  /// Opens the file. `first_bytes`: what files of this kind begin with. A file that begins
  /// otherwise, for instance a transcript, is not overwritten. Errors: command_error.
  result_file(std::string name, std::string_view first_bytes);
  /// Removes a new file that got no results.
  ~result_file();
  result_file(const result_file&) = delete;
  result_file& operator=(const result_file&) = delete;

  [[nodiscard]] std::ostream& stream() noexcept { return stream_; }
  /// Writes what stream() has got. Errors: command_error when not all could be written.
  void commit();

 private:
  std::string name_;
  bool is_new_ = false;
  io::descriptor file_;
  std::ostringstream stream_;
};

/// A new folder, for its owner alone. The destructor removes it, with all that is in it.
class temporary_folder {
 public:
  /// `prefix`: the beginning of its path. Errors: command_error.
  explicit temporary_folder(const std::filesystem::path& prefix);
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// The destructor leaves it where it is.
  const std::filesystem::path& keep() noexcept;

 private:
  std::filesystem::path path_;
  bool is_kept_ = false;
};

/// Makes a directory, and those above it. True when it was not there.
/// Errors: std::system_error, with its name.
bool make_directory(const std::string& name);

/// The names of all entries of a directory, whatever they are. Errors: command_error.
std::set<std::string> names_in(const std::filesystem::path& directory);

/// A file to read from.
/// Errors: std::system_error, with the file's name. Reading from a pipe or a terminal: cancelled.
class input_file : public transcript::byte_source {
 public:
  /// "-" is stdin.
  explicit input_file(std::string name);
  ~input_file() override;
  std::size_t read(char* target, std::size_t size) override;

 private:
  struct readiness;

  std::string name_;
  io::descriptor file_;
  std::unique_ptr<readiness> readiness_;  ///< null for a regular file, which is always ready
};

/// How a user other than this one and root can change a file or a folder: "belongs to the user
/// 65534", "can be written by other users"; empty when none can.
std::string access_of_others(const struct stat& status);
/// Refuses a file or a folder that another user could have put there, or led elsewhere by a link.
/// Commands call it before they keep something in a folder, or trust a file. A path that does not
/// exist is fine. Other users have their own files in a sticky folder such as /tmp, so each file in
/// one that is trusted needs a call of its own. Errors: command_error.
void require_own(const std::filesystem::path& path);

/// Makes a directory, and those above it, for its owner alone. If it exists, calls require_own().
/// Errors: std::system_error, with its name; command_error.
void make_private_directory(const std::string& name);

/// So many random digits, 0 to f, for names that no other process and no other machine makes.
std::string random_digits(std::size_t count);
/// "20261121T070000Z-0123abcd": the time, and eight random digits.
std::string unique_name();

/// The whole content of a file; "-" is stdin.
/// Errors: std::system_error, with the file's name.
std::string text_of_file(const std::string& name);

/// A new file to append to, for its owner alone. Each write is one writev(2).
/// Errors: std::system_error, with the file's name.
class output_file : public transcript::byte_sink {
 public:
  explicit output_file(std::string name);
  void write(std::span<const std::string_view> pieces) override;
  /// Gives it another name in the same file system. It replaces a file of that name.
  void rename(const std::string& target);
  void remove() noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  io::descriptor file_;
};

/// The most bytes that a record of Kinesis can have, its data and its partition key together.
inline constexpr std::size_t max_record = 10'485'760;

/// The payloads of a file as --data takes it: its lines that are not empty, without their newlines.
/// "-" is stdin. Errors: command_error, std::system_error with the file's name.
std::vector<std::string> read_payloads(const std::string& name);

}  // namespace kclxx::tool

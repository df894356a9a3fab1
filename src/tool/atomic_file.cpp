// SPDX-License-Identifier: Apache-2.0
#include "tool/atomic_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "io/line_writer.hpp"
#include "tool/command_error.hpp"

namespace kclxx::tool {

namespace {

bool begins_with(const std::string& name, std::string_view first_bytes) {
  std::ifstream in(name, std::ios::binary);
  if (!in.is_open()) cannot_set_up(name + " exists and cannot be read, so it is not replaced");
  std::string found(first_bytes.size(), '\0');
  in.read(found.data(), static_cast<std::streamsize>(found.size()));
  return in.gcount() == 0 || found == first_bytes;
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) cannot_set_up(path, "written");
}

atomic_file::atomic_file(std::string name, std::string_view first_bytes) : name_(std::move(name)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(name_, ignored);
  const bool replaces = std::filesystem::is_regular_file(status);
  if (replaces) {
    if (!begins_with(name_, first_bytes)) {
      cannot_set_up(name_ + " is a file of another kind, and is not replaced");
    }
    // After the kernel, which does not follow each link (fs.protected_symlinks).
    name_ = std::filesystem::canonical(name_).string();
  }
  // A pipe or a device has no older result that could be lost.
  if (std::filesystem::exists(status) && !replaces) {
    file_ = io::descriptor(::open(name_.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    open();
    if (replaces) ::fchmod(file_.get(), static_cast<mode_t>(status.permissions()));
  }
  if (!file_.is_open()) cannot_set_up(name_ + " cannot be made: " + std::strerror(errno));
}

// O_EXCL follows no symbolic link, and takes no file of another process.
void atomic_file::open() {
  constexpr int attempts = 100;
  for (int i = 0; i < attempts && !file_.is_open(); ++i) {
    part_ = name_ + "." + std::to_string(::getpid()) + "-" + std::to_string(i) + ".part";
    file_ = io::descriptor(::open(part_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file_.is_open() && errno != EEXIST) return;
  }
}

atomic_file::~atomic_file() {
  if (file_.is_open() && !part_.empty()) std::remove(part_.c_str());
}

void atomic_file::commit() {
  // By hand: a file stream does not keep the reason of a failure.
  if (const auto error = io::write_all(file_.get(), stream_.str())) {
    cannot_set_up(name_ + " cannot be written: " + error.message());
  }
  // Some file systems report only now that the disk is full.
  const bool is_written = file_.close();
  int error = errno;
  const bool is_named =
      is_written && (part_.empty() || std::rename(part_.c_str(), name_.c_str()) == 0);
  if (is_named) return;
  if (is_written) error = errno;
  if (!part_.empty()) std::remove(part_.c_str());
  cannot_set_up(name_ + (is_written ? " cannot be made: " : " cannot be written: ") +
                std::strerror(error));
}

}  // namespace kclxx::tool

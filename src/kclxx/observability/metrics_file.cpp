// SPDX-License-Identifier: Apache-2.0
#include "observability/metrics_file.hpp"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "io/line_writer.hpp"

namespace kclxx::observability {

namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

}  // namespace

std::error_code metrics_file::write(std::string_view text) {
  if (!std::exchange(has_swept_, true)) remove_temporary_files();
  // Its name does not end in .prom, so the collector leaves it alone.
  static std::atomic<unsigned> count = 0;
  const std::string temporary =
      path_ + '.' + std::to_string(::getpid()) + '-' + std::to_string(count++);
  // Others may write to the directory: what they have put there is neither written to nor followed.
  // Nobody else can open it before it has its lock.
  const int fd =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return last_error();
  struct flock whole {};
  whole.l_type = F_WRLCK;
  struct stat about {};
  std::error_code error;
  io::descriptor lock(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!lock.is_open() || ::fcntl(fd, F_OFD_SETLK, &whole) != 0 || ::fchmod(fd, 0644) != 0 ||
      ::fstat(fd, &about) != 0) {
    error = last_error();
  }
  if (!error) error = io::write_all(fd, text);
  if (::close(fd) != 0 && !error) error = last_error();
  if (!error && std::rename(temporary.c_str(), path_.c_str()) != 0) error = last_error();
  if (error) {
    ::unlink(temporary.c_str());
  } else {
    written_ = identity{about.st_dev, about.st_ino};
    lock_ = std::move(lock);
  }
  return error;
}

/// Those of processes that were killed while they wrote.
void metrics_file::remove_temporary_files() const {
  const std::filesystem::path path(path_);
  const std::string prefix = path.filename().string() + '.';
  std::error_code error;
  for (std::filesystem::directory_iterator at(path.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix) &&
        name.find_first_not_of("0123456789-", prefix.size()) == std::string::npos) {
      ::unlink(at->path().c_str());
    }
  }
}

void metrics_file::remove() noexcept {
  struct stat about {};
  if (!written_ || ::stat(path_.c_str(), &about) != 0) return;
  if (about.st_dev == written_->device && about.st_ino == written_->number) {
    ::unlink(path_.c_str());
  }
  written_.reset();
}

}  // namespace kclxx::observability

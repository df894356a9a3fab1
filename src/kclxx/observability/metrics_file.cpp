// SPDX-License-Identifier: Apache-2.0
#include "observability/metrics_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/line_writer.hpp"

namespace kclxx::observability {

namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

}  // namespace

std::error_code metrics_file::write(std::string_view text) {
  // Its name does not end in .prom, so the collector leaves it alone.
  const std::string temporary = path_ + "." + std::to_string(::getpid());
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return last_error();
  struct stat about {};
  std::error_code error;
  if (::fchmod(fd, 0644) != 0 || ::fstat(fd, &about) != 0) error = last_error();
  if (!error) error = io::write_all(fd, text);
  if (::close(fd) != 0 && !error) error = last_error();
  if (!error && std::rename(temporary.c_str(), path_.c_str()) != 0) error = last_error();
  if (error) {
    ::unlink(temporary.c_str());
  } else {
    written_ = identity{about.st_dev, about.st_ino};
  }
  return error;
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

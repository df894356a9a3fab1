// SPDX-License-Identifier: Apache-2.0
#include "disk.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace disk {

namespace {

/// Closes it where there is nobody to report an error to.
class descriptor {
 public:
  explicit descriptor(int fd) : fd_(fd) {}
  ~descriptor() { ::close(fd_); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  operator int() const { return fd_; }  // NOLINT(google-explicit-constructor)

 private:
  int fd_;
};

}  // namespace

int open(const std::filesystem::path& file, int flags) {
  return retry([&] { return ::open(file.c_str(), flags | O_CLOEXEC, 0644); }, "cannot open", file);
}

void replace(const std::filesystem::path& file, const std::string& text) {
  auto next = file;
  next += ".new";
  {
    const descriptor fd(open(next, O_WRONLY | O_CREAT | O_TRUNC));
    for (std::size_t written = 0; written < text.size();) {
      written += static_cast<std::size_t>(
          retry([&] { return ::write(fd, text.data() + written, text.size() - written); },
                "cannot write", next));
    }
    retry([&] { return ::fsync(fd); }, "cannot sync", next);
  }
  std::filesystem::rename(next, file);
  sync_directory_of(file);
}

void sync_directory_of(const std::filesystem::path& file) {
  const auto directory = file.has_parent_path() ? file.parent_path() : ".";
  const descriptor fd(open(directory, O_RDONLY | O_DIRECTORY));
  retry([&] { return ::fsync(fd); }, "cannot sync", directory);
}

}  // namespace disk

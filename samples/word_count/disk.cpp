// SPDX-License-Identifier: Apache-2.0
#include "disk.hpp"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

namespace disk {

namespace {

/// Calls a function of POSIX until no signal interrupts it.
template <class Call>
auto retry(Call call, const char* step, const std::filesystem::path& file) {
  for (;;) {
    const auto result = call();
    if (result != -1) return result;
    if (errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), step + (" " + file.string()));
    }
  }
}

}  // namespace

descriptor::descriptor(const std::filesystem::path& file, int flags)
    : fd_(retry([&] { return ::open(file.c_str(), flags | O_CLOEXEC, 0644); }, "cannot open",
                file)) {}

descriptor::~descriptor() { ::close(fd_); }

lock::lock(const std::filesystem::path& file) : fd_(file, O_RDWR | O_CREAT) {
  retry([&] { return ::flock(fd_, LOCK_EX); }, "cannot lock", file);
}

void replace(const std::filesystem::path& file, const std::string& text) {
  auto next = file;
  next += ".new";
  {
    const descriptor fd(next, O_WRONLY | O_CREAT | O_TRUNC);
    for (std::size_t written = 0; written < text.size();) {
      written += static_cast<std::size_t>(
          retry([&] { return ::write(fd, text.data() + written, text.size() - written); },
                "cannot write", next));
    }
    retry([&] { return ::fsync(fd); }, "cannot sync", next);
  }
  std::filesystem::rename(next, file);
  const auto directory = file.has_parent_path() ? file.parent_path() : ".";
  const descriptor fd(directory, O_RDONLY | O_DIRECTORY);
  retry([&] { return ::fsync(fd); }, "cannot sync", directory);
}

}  // namespace disk

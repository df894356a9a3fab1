// SPDX-License-Identifier: Apache-2.0
#include "fence.hpp"

#include <array>
#include <charconv>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <unistd.h>
#include <utility>

#include <kclxx/error.hpp>

#include "disk.hpp"

/// Of the open file: the kernel ends it with the process.
class fence::lock {
 public:
  explicit lock(const fence& on) : fd_(on.fd_) {
    disk::retry([&] { return ::flock(fd_, LOCK_EX); }, "cannot lock", on.file_);
  }
  ~lock() { ::flock(fd_, LOCK_UN); }
  lock(const lock&) = delete;
  lock& operator=(const lock&) = delete;

 private:
  int fd_;
};

fence::fence(std::filesystem::path file)
    : file_(std::move(file)), fd_(disk::open(file_, O_RDWR | O_CREAT)) {
  try {
    const lock exclusive(*this);
    epoch_ = read() + 1;
    const std::string text = std::to_string(epoch_) + "\n";
    disk::retry([&] { return ::pwrite(fd_, text.data(), text.size(), 0); }, "cannot write", file_);
    disk::retry([&] { return ::fsync(fd_); }, "cannot sync", file_);
    disk::sync_directory_of(file_);
  } catch (...) {
    ::close(fd_);
    throw;
  }
}

fence::~fence() { ::close(fd_); }

std::uint64_t fence::read() const {
  std::array<char, 32> text{};
  const auto size =
      disk::retry([&] { return ::pread(fd_, text.data(), text.size(), 0); }, "cannot read", file_);
  if (size == 0) return 0;  // a new file
  std::uint64_t epoch = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + size, epoch);
  if (error != std::errc() || std::string_view(end, text.data() + size) != "\n") {
    throw std::runtime_error(file_.string() + " is damaged: there is no epoch in it");
  }
  return epoch;
}

void fence::guard(const std::function<void()>& write) const {
  const lock exclusive(*this);
  const std::uint64_t last = read();
  if (last != epoch_) {
    throw kclxx::fenced_error(file_.filename().string() + " has epoch " + std::to_string(last) +
                              ", and this process began with " + std::to_string(epoch_));
  }
  write();
}

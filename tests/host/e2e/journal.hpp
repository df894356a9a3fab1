// SPDX-License-Identifier: Apache-2.0
// What a child went through, in a file of its own that survives kill -9: an event is in the file
// once write(2) has returned. harness/journal.py reads it and has the format.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

class journal {
 public:
  /// A new file in `directory`. The time makes its name unique: process ids come again.
  journal(const std::filesystem::path& directory, std::string_view shard)
      : journal(directory / (std::string(shard) + "." + std::to_string(::getpid()) + "." + now()),
                O_CREAT | O_EXCL) {}
  /// Continues one.
  explicit journal(const std::filesystem::path& path) : journal(path, 0) {}
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;
  ~journal() { ::close(fd_); }

  const std::filesystem::path& path() const { return path_; }

  /// Adds a line to what the next `write` writes: the time, and the fields between tabs.
  template <class... Fields>
  journal& line(const Fields&... fields) {
    text_ += now();
    ((text_ += '\t', text_ += text_of(fields)), ...);
    text_ += '\n';
    return *this;
  }

  /// Writes all lines at once.
  void write() {
    for (std::string_view unwritten = text_; !unwritten.empty();) {
      const ssize_t n = ::write(fd_, unwritten.data(), unwritten.size());
      if (n == -1 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "cannot write the journal");
      if (n > 0) unwritten.remove_prefix(static_cast<std::size_t>(n));
    }
    text_.clear();
  }

 private:
  journal(std::filesystem::path path, int flags)
      : path_(std::move(path)),
        fd_(::open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0644)) {
    if (fd_ == -1)
      throw std::system_error(errno, std::generic_category(), "cannot open " + path_.string());
  }

  static std::string_view text_of(std::string_view text) { return text; }
  static std::string text_of(std::uint64_t number) { return std::to_string(number); }

  /// Nanoseconds of the clock that all processes of the machine share.
  static std::string now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::to_string(std::uint64_t(time.tv_sec) * 1'000'000'000U +
                          std::uint64_t(time.tv_nsec));
  }

  std::filesystem::path path_;
  int fd_;
  std::string text_;
};

/// The journals of a process: of one shard, with kclxx-share of one after another. Thread-safe.
class journals {
 public:
  explicit journals(std::filesystem::path directory) : directory_(std::move(directory)) {}

  std::unique_ptr<journal> add(std::string_view shard) {
    auto opened = std::make_unique<journal>(directory_, shard);
    const std::lock_guard lock(mutex_);
    paths_.push_back(opened->path());
    return opened;
  }
  /// Into each of them.
  void write_exit(int status) {
    const std::lock_guard lock(mutex_);
    for (const auto& path : paths_) journal(path).line("exit", std::uint64_t(status)).write();
  }

 private:
  std::filesystem::path directory_;
  std::mutex mutex_;
  std::vector<std::filesystem::path> paths_;
};

// SPDX-License-Identifier: Apache-2.0
// What a child went through, in a file of its own that survives kill -9: an event is in the file
// once write(2) has returned. harness/journal.py reads it and has the format.
#pragma once

#include <cerrno>
#include <cstdint>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

class journal {
 public:
  /// A new file in `directory`. The time makes its name unique: process ids come again.
  journal(const std::filesystem::path& directory, std::string_view shard) {
    const auto name = std::string(shard) + "." + std::to_string(::getpid()) + "." + now();
    fd_ = ::open((directory / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
                 0644);
    if (fd_ == -1) throw std::system_error(errno, std::generic_category(), "cannot open " + name);
  }
  journal(const journal&) = delete;
  journal& operator=(const journal&) = delete;
  ~journal() { ::close(fd_); }

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
    for (std::string_view left = text_; !left.empty();) {
      const ssize_t n = ::write(fd_, left.data(), left.size());
      if (n == -1 && errno != EINTR)
        throw std::system_error(errno, std::generic_category(), "cannot write the journal");
      if (n > 0) left.remove_prefix(static_cast<std::size_t>(n));
    }
    text_.clear();
  }

 private:
  static std::string_view text_of(std::string_view text) { return text; }
  static std::string text_of(std::uint64_t number) { return std::to_string(number); }

  /// Nanoseconds of the clock that all processes of the machine share.
  static std::string now() {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC, &time);
    return std::to_string(std::uint64_t(time.tv_sec) * 1'000'000'000U +
                          std::uint64_t(time.tv_nsec));
  }

  int fd_ = -1;
  std::string text_;
};

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <fcntl.h>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <unistd.h>
#include <utility>

namespace kclxx::test {

inline bool is_open(int fd) { return ::fcntl(fd, F_GETFD) != -1; }

/// How many entries a directory has, for instance /proc/self/fd.
inline std::size_t count_of(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory),
                                                std::filesystem::directory_iterator()));
}

/// A pipe. Its destructor closes the ends that are still open.
class open_pipe {
 public:
  open_pipe() {
    if (::pipe2(ends_.data(), O_CLOEXEC) == -1) throw std::runtime_error("pipe2");
  }
  ~open_pipe() {
    close_read_end();
    close_write_end();
  }
  open_pipe(const open_pipe&) = delete;
  open_pipe& operator=(const open_pipe&) = delete;

  [[nodiscard]] int read_end() const { return ends_[0]; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  void close_read_end() { close(ends_[0]); }
  void close_write_end() { close(ends_[1]); }

 private:
  static void close(int& fd) {
    if (fd != -1) ::close(std::exchange(fd, -1));
  }

  std::array<int, 2> ends_{};
};

}  // namespace kclxx::test

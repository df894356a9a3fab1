// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/transcript_file.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/uio.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

[[noreturn]] void fail(const std::string& name, const std::string& doing) {
  throw std::system_error(errno, std::generic_category(), name + " cannot be " + doing);
}

constexpr std::size_t max_pieces = 4;

}  // namespace

/// A pipe or a terminal may have nothing for any time.
struct input_file::readiness {
  explicit readiness(const io::descriptor& file) {
    source.assign(::fcntl(file.get(), F_DUPFD_CLOEXEC, 3));
  }

  void wait() {
    // An error, as for /dev/null, which epoll(7) does not take: it is ready.
    bool is_ready = false;
    source.async_wait(source.wait_read, [&](boost::system::error_code) { is_ready = true; });
    while (!is_ready) loop.run_one(cancellable_loop::clock::time_point::max());
  }

  cancellable_loop loop;
  boost::asio::posix::stream_descriptor source{loop.context()};
};

bool make_directory(const std::string& name) {
  // filesystem_error's own words would name the library's function.
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(name, error);
  if (error) throw std::system_error(error, name + " cannot be made");
  return is_new;
}

input_file::input_file(std::string name)
    : name_(std::move(name)),
      file_(name_ == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                         : ::open(name_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_.is_open()) fail(name_, "read");
  struct stat status {};
  const bool is_file = ::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode);
  if (!is_file) readiness_ = std::make_unique<readiness>(file_);
}

input_file::~input_file() = default;

std::size_t input_file::read(char* target, std::size_t size) {
  for (;;) {
    if (readiness_) readiness_->wait();
    const ssize_t n = ::read(file_.get(), target, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) fail(name_, "read");
  }
}

std::string text_of_file(const std::string& name) {
  input_file file(name);
  std::string text;
  std::array<char, 65536> piece{};
  while (const std::size_t size = file.read(piece.data(), piece.size())) {
    text.append(piece.data(), size);
  }
  return text;
}

output_file::output_file(std::string name, access readers)
    : name_(std::move(name)),
      file_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC,
                   readers == access::owner ? 0600 : 0666)) {
  if (!file_.is_open()) fail(name_, "made");
}

void output_file::write(std::span<const std::string_view> pieces) {
  if (pieces.size() > max_pieces) throw std::logic_error("too many pieces");
  std::array<iovec, max_pieces> parts{};
  std::size_t count = 0;
  for (const std::string_view piece : pieces) {
    parts[count++] = {const_cast<char*>(piece.data()), piece.size()};
  }
  // A write to a file is short only when the disk is full or a signal came; then the rest is tried,
  // which has the reason.
  iovec* next = parts.data();
  while (count > 0) {
    const ssize_t n = ::writev(file_.get(), next, static_cast<int>(count));
    if (n == -1 && errno == EINTR) continue;
    if (n == -1) fail(name_, "written");
    auto written = static_cast<std::size_t>(n);
    while (count > 0 && written >= next->iov_len) {
      written -= next->iov_len;
      ++next;
      --count;
    }
    if (count > 0) {
      next->iov_base = static_cast<char*>(next->iov_base) + written;
      next->iov_len -= written;
    }
  }
}

void output_file::rename(const std::string& target) {
  if (::rename(name_.c_str(), target.c_str()) == -1) fail(name_, "renamed to " + target);
  name_ = target;
}

void output_file::remove() noexcept { ::unlink(name_.c_str()); }

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/files.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <random>
#include <sstream>
#include <stdexcept>
#include <sys/stat.h>
#include <sys/uio.h>
#include <system_error>
#include <tuple>
#include <unistd.h>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>

#include "io/lines.hpp"
#include "tool/command_error.hpp"
#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

/// Whether the file is empty, or begins with these bytes.
bool begins_with(const std::string& name, std::string_view first_bytes) {
  std::ifstream in(name, std::ios::binary);
  if (!in.is_open()) cannot_set_up(name + " exists and cannot be read, so it is not replaced");
  std::string beginning(first_bytes.size(), '\0');
  in.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  return in.gcount() == 0 || beginning == first_bytes;
}

}  // namespace

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) cannot_set_up(path, "written");
}

result_file::result_file(std::string name, std::string_view first_bytes) : name_(std::move(name)) {
  std::error_code ignored;
  const auto status = std::filesystem::status(name_, ignored);
  is_new_ = !std::filesystem::exists(status);
  if (std::filesystem::is_regular_file(status) && !begins_with(name_, first_bytes)) {
    cannot_set_up(name_ + " is a file of another kind, and is not replaced");
  }
  file_ = io::descriptor(::open(name_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  if (!file_.is_open()) cannot_set_up(name_, "made");
}

result_file::~result_file() {
  if (is_new_) std::remove(name_.c_str());
}

void result_file::commit() {
  std::ignore =
      ::ftruncate(file_.get(), 0);  // it fails for a device or a pipe, which has no content
  if (const auto error = io::write_all(file_.get(), stream_.str())) {
    cannot_set_up(name_ + " cannot be written: " + error.message());
  }
  // Some file systems report only now that the disk is full.
  if (!file_.close()) cannot_set_up(name_, "written");
  is_new_ = false;
}

namespace {

[[noreturn]] void fail(const std::string& name, const std::string& doing) {
  throw std::system_error(errno, std::generic_category(), name + " cannot be " + doing);
}

constexpr std::size_t max_pieces = 4;

}  // namespace

/// Waits for a pipe or a terminal, which may be silent for any time.
struct input_file::readiness {
  explicit readiness(io::descriptor file) { source.assign(file.release()); }

  void wait() {
    // An error means that it is ready: epoll(7) does not take /dev/null, for instance.
    bool is_ready = false;
    source.async_wait(source.wait_read, [&](boost::system::error_code) { is_ready = true; });
    while (!is_ready) loop.run_one(cancellable_loop::clock::time_point::max());
  }

  cancellable_loop loop;
  boost::asio::posix::stream_descriptor source{loop.context()};
};

temporary_folder::temporary_folder(const std::filesystem::path& prefix) {
  std::string path = prefix.string() + "XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) cannot_set_up(path, "made");
  path_ = path;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  if (!is_kept_) std::filesystem::remove_all(path_, ignored);
}

const std::filesystem::path& temporary_folder::keep() noexcept {
  is_kept_ = true;
  return path_;
}

bool make_directory(const std::string& name) {
  // filesystem_error's own words would name the library's function.
  std::error_code error;
  const bool is_new = std::filesystem::create_directories(name, error);
  if (error) throw std::system_error(error, name + " cannot be made");
  return is_new;
}

std::set<std::string> names_in(const std::filesystem::path& directory) {
  std::set<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    names.insert(entry->path().filename().string());
  }
  if (error) cannot_set_up(directory.string() + " cannot be read: " + error.message());
  return names;
}

std::string access_of_others(const struct stat& status) {
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return "belongs to the user " + std::to_string(status.st_uid);
  }
  const bool is_open = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  return is_open ? "can be written by other users" : "";
}

void require_own(const std::filesystem::path& path) {
  const auto look = [&path](auto examine) {
    struct stat status {};
    if (examine(path.c_str(), &status) == -1) {
      if (errno != ENOENT && errno != ENOTDIR) cannot_set_up(path, "examined");
      return;
    }
    // A link has a mode that lets anybody write, but only its owner can replace it.
    const bool is_sticky = S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0;
    if (S_ISLNK(status.st_mode) || is_sticky) status.st_mode &= ~mode_t{S_IWGRP | S_IWOTH};
    const std::string problem = access_of_others(status);
    if (problem.empty()) return;
    const bool is_own = status.st_uid == ::geteuid() || status.st_uid == 0;
    cannot_set_up(path.string() + " " + problem +
                  (is_own ? ": chmod go-w it" : ": make it yours (chown)") +
                  ", or name another folder");
  };
  look(::lstat);
  look(::stat);
}

void make_private_directory(const std::string& name) {
  if (make_directory(name)) {
    std::filesystem::permissions(name, std::filesystem::perms::owner_all);
  } else {
    require_own(name);
  }
}

std::string random_digits(std::size_t count) {
  std::random_device source;
  std::string digits;
  while (digits.size() < count) digits += "0123456789abcdef"[source() & 0xfU];
  return digits;
}

std::string unique_name() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::ostringstream name;
  name << std::put_time(&parts, "%Y%m%dT%H%M%SZ-") << random_digits(8);
  return name.str();
}

input_file::input_file(std::string name)
    : name_(std::move(name)),
      file_(name_ == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
                         : ::open(name_.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (!file_.is_open()) fail(name_, "read");
  struct stat status {};
  if (::fstat(file_.get(), &status) == 0 && S_ISREG(status.st_mode)) return;
  io::descriptor copy(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 3));
  if (!copy.is_open()) fail(name_, "read");
  readiness_ = std::make_unique<readiness>(std::move(copy));
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

output_file::output_file(std::string name)
    : name_(std::move(name)),
      file_(::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_APPEND | O_CLOEXEC,
                   0600)) {
  if (!file_.is_open()) fail(name_, "made");
}

void output_file::write(std::span<const std::string_view> pieces) {
  if (pieces.size() > max_pieces) throw std::logic_error("too many pieces");
  std::array<iovec, max_pieces> parts{};
  std::size_t count = 0;
  for (const std::string_view piece : pieces) {
    parts[count++] = {const_cast<char*>(piece.data()), piece.size()};
  }
  // A write to a file is short only when the disk is full or a signal came. The next write then
  // fails with the reason.
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

void replace_file(const std::string& name, std::string_view text) {
  const std::string part = name + ".part";
  ::unlink(part.c_str());  // a process that was killed may have left it
  output_file file(part);
  file.write({&text, 1});
  file.rename(name);
}

std::vector<std::string> read_payloads(const std::string& name) {
  std::istringstream lines(text_of_file(name));
  std::vector<std::string> payloads;
  std::uint64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.size() > max_record) {
      cannot_set_up(name + ":" + std::to_string(number) + " is too long: a record has at most " +
                    std::to_string(max_record) + " bytes");
    }
    if (!line.empty()) payloads.push_back(std::move(line));
  }
  if (payloads.empty()) cannot_set_up(name + " has no line with a payload");
  return payloads;
}

}  // namespace kclxx::tool

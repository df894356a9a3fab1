// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fcntl.h>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/shard_context.hpp>

#include "base/file_name.hpp"
#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "protocol/base64.hpp"
#include "protocol/json_string.hpp"

namespace kclxx {

namespace {

using std::filesystem::path;

[[noreturn]] void raise(const std::string& action, const path& file) {
  const int error = errno;  // NOLINT(misc-include-cleaner)
  throw std::system_error(error, std::generic_category(), action + " " + file.string());
}

/// A file that lines are appended to, locked against other processes.
class locked_file {
 public:
  /// Waits for another process's lock, 5 s at most by the shard's clock. Without a `shard` it does
  /// not wait. Errors: std::system_error.
  locked_file(const path& file, const shard_context* shard) : path_(file) {
    constexpr int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    struct stat about {};
    do {
      fd_ = io::descriptor(::open(path_.c_str(), flags, 0600));
      if (fd_.get() < 0) raise("cannot open", path_);
      if (::fstat(fd_.get(), &about) != 0) raise("cannot read", path_);
      require_own(about);
      if (!lock(shard)) return;
      if (lock_error_) break;
      if (::fstat(fd_.get(), &about) != 0) raise("cannot read", path_);
      // While this waited for the lock, the file may have been moved away or deleted.
    } while (!is_named(about));
    size_ = about.st_size;
    is_locked_ = !lock_error_;
  }
  locked_file(const locked_file&) = delete;
  locked_file& operator=(const locked_file&) = delete;
  /// A process that was forked meanwhile has the descriptor, too, and would keep the lock.
  ~locked_file() { ::flock(fd_.get(), LOCK_UN); }

  void remove_if_empty() const {
    if (is_locked_ && size_ == 0) ::unlink(path_.c_str());
  }

  /// Whether the last line has no end: a process died while it wrote, or the machine did.
  [[nodiscard]] bool ends_within_a_line() const {
    char last = '\n';
    if (size_ > 0 && ::pread(fd_.get(), &last, 1, size_ - 1) != 1) raise("cannot read", path_);
    return last != '\n';
  }

  /// Errors: std::system_error; the file is then as before, where that is possible.
  void append_durably(std::string_view text) {
    try {
      const std::error_code error = io::write_all(fd_.get(), text);
      if (error) throw std::system_error(error, "cannot write to " + path_.string());
      if (::fdatasync(fd_.get()) != 0) raise("cannot synchronize", path_);
      static_cast<void>(synchronize_directory());
    } catch (const std::system_error&) {
      // Without the lock the end may be another process's line.
      if (is_locked_) [[maybe_unused]]
        const int cut = ::ftruncate(fd_.get(), size_);
      throw;
    }
  }
  /// Without this the name of a new file could get lost in a crash. Returns why that cannot be
  /// prevented here. Errors: std::system_error for any other failure.
  std::error_code synchronize_directory() const {
    const path directory = path_.has_parent_path() ? path_.parent_path() : path(".");
    const io::descriptor parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (parent.get() >= 0 && ::fsync(parent.get()) == 0) return {};
    if (parent.get() < 0 || !io::is_unsupported(errno)) raise("cannot synchronize", directory);
    return {errno, std::generic_category()};
  }
  /// Why it is not locked though no other process has the lock.
  [[nodiscard]] const std::error_code& lock_error() const { return lock_error_; }

 private:
  /// In a file that another user has made or can write, records could be read, cut or forged.
  void require_own(const struct stat& about) const {
    const auto refuse = [this](std::errc why, const char* text) {
      throw std::system_error(std::make_error_code(why), path_.string() + " " + text);
    };
    if (!S_ISREG(about.st_mode)) refuse(std::errc::invalid_argument, "is no regular file");
    if (about.st_uid != ::geteuid()) {
      refuse(std::errc::operation_not_permitted, "belongs to another user");
    }
    if ((about.st_mode & 022U) != 0) {
      refuse(std::errc::operation_not_permitted, "can be written by other users");
    }
  }
  /// False while another process has the lock. The wait is limited, since that process may be
  /// suspended, and whoever can read the file can lock it.
  bool lock(const shard_context* shard) {
    using namespace std::chrono_literals;
    const auto end = shard == nullptr ? shard_context::clock::time_point() : shard->now() + 5s;
    while (::flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (io::is_unsupported(errno)) {
        lock_error_ = {errno, std::generic_category()};
        return true;
      }
      if (errno != EWOULDBLOCK) raise("cannot lock", path_);
      if (shard == nullptr) return false;
      if (shard->now() >= end || !shard->sleep_for(50ms)) {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                                "another process keeps " + path_.string() + " locked");
      }
    }
    return true;
  }
  [[nodiscard]] bool is_named(const struct stat& opened) const {
    struct stat named {};
    if (::stat(path_.c_str(), &named) == 0) {
      return named.st_ino == opened.st_ino && named.st_dev == opened.st_dev;
    }
    if (errno != ENOENT) raise("cannot read", path_);
    return false;
  }

  const path& path_;
  io::descriptor fd_;
  off_t size_ = 0;  // when it was locked
  bool is_locked_ = false;
  std::error_code lock_error_;
};

void append_name(std::string& out, std::string_view name) {
  out.append(out.empty() ? "{\"" : ",\"").append(name).append("\":");
}

void append(std::string& out, std::string_view name, std::int64_t value) {
  append_name(out, name);
  out.append(std::to_string(value));
}

void append(std::string& out, std::string_view name, const std::optional<std::string_view>& text) {
  append_name(out, name);
  if (text) {
    protocol::append_quoted(out, *text);
  } else {
    out.append("null");
  }
}

/// A name from the daemon, as a part of a file's name.
void append_part(std::string& out, std::string_view name) {
  for (const char c : name) out += detail::is_plain(c, "-_.") ? c : '_';
  out += '.';
}

}  // namespace

std::string parked_line(const shard_context& shard, const failed_record& failed) {
  std::string line;
  const auto [data, partition_key, sequence_number, sub_sequence_number, arrival] =
      failed.record.as_fields();
  if (shard.application_name()) append(line, "application", *shard.application_name());
  if (shard.stream_name()) append(line, "stream", *shard.stream_name());
  append(line, "shard", shard.shard_id());
  append(line, "sequenceNumber", sequence_number);
  append(line, "subSequenceNumber", static_cast<std::int64_t>(sub_sequence_number));
  append(line, "partitionKey", partition_key);
  if (arrival) append(line, "approximateArrivalTimestamp", arrival->count());
  append(line, "attempts", failed.attempts);
  append(line, "firstError", failed.first_error);
  append(line, "lastError", failed.last_error);
  append(line, "parkedAt",
         floor<std::chrono::milliseconds>(shard.date()).time_since_epoch().count());
  append_name(line, "data");
  if (data) {
    line += '"';
    protocol::append_base64(line, *data);
    line += '"';
  } else {
    line += "null";
  }
  line += "}\n";
  return line;
}

parking_file::parking_file(const path& directory)
    : directory_(std::filesystem::absolute(directory)) {}

parking_file::~parking_file() = default;

path parking_file::file_of(const shard_context& shard) const {
  std::string name;
  if (shard.application_name()) append_part(name, *shard.application_name());
  if (shard.stream_name()) append_part(name, *shard.stream_name());
  append_part(name, shard.shard_id());
  return directory_ / detail::file_name(name, "parked.jsonl");
}

void parking_file::prepare(const shard_context& shard) {
  const path where = file_of(shard);
  try {
    const locked_file file(where, nullptr);
    if (file.lock_error()) {
      shard.log(log_level::warning,
                where.string() + " cannot be locked: " + file.lock_error().message() +
                    "; let no other process park the same shard there, or use another file system");
    }
    if (const std::error_code error = file.synchronize_directory()) {
      shard.log(log_level::warning,
                "the directory of " + where.string() +
                    " cannot be synchronized: " + error.message() +
                    "; a crash of the machine may lose a new file, so use another file system");
    }
    file.remove_if_empty();
  } catch (const std::system_error& error) {
    throw std::runtime_error(std::string("records cannot be parked: ") + error.what());
  }
}

void parking_file::park(const shard_context& shard, std::span<const failed_record> failed) {
  const path where = file_of(shard);
  std::string lines;
  for (const failed_record& record : failed) lines += parked_line(shard, record);
  locked_file file(where, &shard);
  if (file.ends_within_a_line()) lines.insert(lines.begin(), '\n');
  file.append_durably(lines);
}

}  // namespace kclxx

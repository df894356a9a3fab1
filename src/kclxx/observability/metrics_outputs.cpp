// SPDX-License-Identifier: Apache-2.0
#include "observability/metrics_outputs.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/duration.hpp"
#include "io/lines.hpp"
#include "observability/text_format.hpp"

namespace kclxx::observability {

namespace {

constexpr std::chrono::milliseconds least_interval{1};

}  // namespace

bool metrics_outputs::is_any_on(const metrics_options& options) noexcept {
  using std::chrono::milliseconds;
  return !options.directory.empty() || options.summary_interval > milliseconds(0) ||
         options.cloudwatch_interval > milliseconds(0);
}

metrics_outputs::metrics_outputs(const metrics_options& options, log write_log, text write_text)
    : options_(options),
      write_log_(std::move(write_log)),
      write_text_(std::move(write_text)),
      file_schedule_(
          options.directory.empty()
              ? clock::duration::zero()
              : std::max<clock::duration>(detail::clamped(options.write_interval), least_interval)),
      summary_(detail::clamped(options.summary_interval)),
      cloudwatch_(detail::clamped(options.cloudwatch_interval)),
      has_file_(file_schedule_.is_on()) {}

void metrics_outputs::start(clock::time_point now) {
  file_schedule_.start_due(now);
  summary_.start(now);
  cloudwatch_.start(now);
}

metrics_outputs::clock::time_point metrics_outputs::due() const {
  return std::min({has_file_ ? file_schedule_.due() : clock::time_point::max(), summary_.due(),
                   cloudwatch_.due()});
}

void metrics_outputs::write(const figures& current, const observer::shard_names& names,
                            clock::time_point now, bool is_last, bool removes_file) {
  if (has_file_ && removes_file && options_.remove_at_end) {
    has_file_ = false;
    if (file_) file_->remove();
  }
  if (has_file_ && (is_last || now >= file_schedule_.due())) {
    file_schedule_.start(now);
    write_file(current, names);
  }
  if (summary_.is_on() && (is_last || now >= summary_.due())) {
    const auto time = summary_.take(now);
    write_log_(log_level::info, summary_line(std::exchange(summarized_, current), current, time));
  }
  if (cloudwatch_.is_on() && (is_last || now >= cloudwatch_.due())) {
    cloudwatch_.take(now);
    const auto date = std::chrono::system_clock::now();
    write_text_(cloudwatch_line(std::exchange(reported_, current), current, names, date) + '\n');
  }
}

/// A file that cannot be written is reported once, until it can be written again.
void metrics_outputs::write_file(const figures& current, const observer::shard_names& names) {
  if (!file_) open_file(names);
  const std::error_code error = file_->write(to_prometheus_text(current, names) + own_text(names));
  if (error && !std::exchange(has_file_failed_, true)) {
    write_log_(log_level::warning,
               "cannot write the metrics to " + file_->path() + ": " + error.message());
  }
  if (!error) has_file_failed_ = false;
}

std::string metrics_outputs::own_text(const observer::shard_names& names) {
  if (!options_.own_metrics) return {};
  std::string why = "an unknown exception";
  try {
    return own_metrics_text(options_.own_metrics(names), names,
                            [this](const std::string& name, const std::string& problem) {
                              log_own("'" + name + "' is left out: " + problem);
                            });
  } catch (const std::exception& error) {
    why = error.what();
  } catch (...) {  // NOLINT(bugprone-empty-catch)
  }
  if (!std::exchange(has_own_thrown_, true)) log_own("it failed: " + why);
  return {};
}

/// Once for each text, as long as there are few.
void metrics_outputs::log_own(const std::string& message) {
  constexpr std::size_t most = 100;
  if (logged_own_.size() == most || !logged_own_.insert(message).second) return;
  write_log_(log_level::warning, "metrics_options::own_metrics: " + message + " (logged once)");
}

void metrics_outputs::open_file(const observer::shard_names& names) {
  std::string directory = options_.directory;
  if (directory.back() != '/') directory += '/';
  file_.emplace(directory + metrics_file_name(names));
  if (names.application_name) return;
  write_log_(log_level::warning,
             "the metrics have application=\"unknown\", since KCLXX_APPLICATION_NAME is not set; "
             "kclxx daemon run sets it");
}

namespace {

std::error_code last_error() { return {errno, std::generic_category()}; }

}  // namespace

std::error_code metrics_file::write(std::string_view text) {
  if (!std::exchange(has_swept_, true)) remove_temporary_files();
  // Its name does not end in .prom, so the collector leaves it alone.
  static std::atomic<unsigned> count = 0;
  const std::string temporary =
      path_ + '.' + std::to_string(::getpid()) + '-' + std::to_string(count++);
  // Others may write to the directory: what they have put there is neither written to nor followed.
  // Nobody else can open it before it has its lock.
  const int fd =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return last_error();
  struct flock whole {};
  whole.l_type = F_WRLCK;
  struct stat about {};
  std::error_code error;
  io::descriptor lock(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!lock.is_open() || ::fcntl(fd, F_OFD_SETLK, &whole) != 0 || ::fchmod(fd, 0644) != 0 ||
      ::fstat(fd, &about) != 0) {
    error = last_error();
  }
  if (!error) error = io::write_all(fd, text);
  if (::close(fd) != 0 && !error) error = last_error();
  if (!error && std::rename(temporary.c_str(), path_.c_str()) != 0) error = last_error();
  if (error) {
    ::unlink(temporary.c_str());
  } else {
    written_ = identity{about.st_dev, about.st_ino};
    lock_ = std::move(lock);
  }
  return error;
}

/// Those of processes that were killed while they wrote.
void metrics_file::remove_temporary_files() const {
  const std::filesystem::path path(path_);
  const std::string prefix = path.filename().string() + '.';
  std::error_code error;
  for (std::filesystem::directory_iterator at(path.parent_path(), error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(prefix) &&
        name.find_first_not_of("0123456789-", prefix.size()) == std::string::npos) {
      ::unlink(at->path().c_str());
    }
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "observability/log_writer.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "io/descriptor.hpp"
#include "io/line_writer.hpp"
#include "observability/log_format.hpp"

namespace kclxx {

namespace {

/// The log quotes records. Where others may write, too, a link could lead it into another file, a
/// FIFO without a reader could hold it up, and a file of theirs would let them read it.
std::error_code append(const std::string& file, const std::string& line) noexcept {
  const io::descriptor log(::open(
      file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat about {};
  if (!log.is_open() || ::fstat(log.get(), &about) != 0) return {errno, std::generic_category()};
  const bool is_ours = about.st_uid == ::geteuid() || about.st_uid == 0;
  if (S_ISREG(about.st_mode) && !is_ours) {
    return std::make_error_code(std::errc::operation_not_permitted);
  }
  return io::write_all(log.get(), line);
}

}  // namespace

namespace observability {

log_output::log_output(log_options options, int descriptor)
    : options_(std::move(options)), descriptor_(descriptor) {}

void log_output::write(const log_entry& entry) const noexcept {
  try {
    write_or_throw(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line must not end the shard
  }
}

void log_output::write_or_throw(const log_entry& entry) const {
  if (entry.level < options_.level) return;
  const auto now = std::chrono::system_clock::now();
  const bool is_json = options_.json;
  const std::string line = is_json ? json_line(entry, now) : text_line(entry);
  // A closed stderr must not end the shard.
  if (!options_.file.empty()) {
    const std::error_code error =
        append(options_.file, is_json ? line : to_iso_8601(now) + ' ' + line);
    if (!error) return;
    if (!has_reported_.exchange(true)) {
      const log_entry why{log_level::warning, entry.shard_id,
                          "the log file " + options_.file +
                              " cannot be written, so lines go to "
                              "stderr: " +
                              error.message() + " (logged once)"};
      static_cast<void>(io::write_all(descriptor_, is_json ? json_line(why, now) : text_line(why)));
    }
  }
  static_cast<void>(io::write_all(descriptor_, line));
}

log_options with_environment(log_options options, const detail::environment& variables,
                             std::vector<std::string>& problems) {
  std::string problem = read_log_variable(variables("KCLXX_LOG").value_or(""), options);
  if (!problem.empty()) problems.push_back(std::move(problem));
  if (auto file = variables("KCLXX_LOG_FILE")) options.file = std::move(*file);
  return options;
}

}  // namespace observability

class log_writer::state final : public observability::log_output {
 public:
  using log_output::log_output;
};

log_writer::log_writer(const log_options& options, int descriptor) {
  std::vector<std::string> reported_by_run;
  state_ = std::make_shared<const state>(
      observability::with_environment(options, detail::own_environment, reported_by_run),
      descriptor);
}

void log_writer::operator()(const log_entry& entry) const noexcept { state_->write(entry); }

}  // namespace kclxx

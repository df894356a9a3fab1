// SPDX-License-Identifier: Apache-2.0
#include "observability/log_writer.hpp"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>

#include "io/line_writer.hpp"
#include "observability/journal.hpp"
#include "observability/log_format.hpp"

namespace kclxx {

namespace {

using observability::journal;

const char* environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets it here
  return value == nullptr ? "" : value;
}

std::error_code append(const std::string& file, const std::string& line) noexcept {
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) return {errno, std::generic_category()};
  const std::error_code error = io::write_all(fd, line);
  ::close(fd);
  return error;
}

}  // namespace

class log_writer::state {
 public:
  state(log_options options, int descriptor)
      : options_(std::move(options)), descriptor_(descriptor) {
    if (options_.form == log_form::automatic) {
      const bool is_journal =
          options_.file.empty() && journal::is_stream(descriptor_, environment("JOURNAL_STREAM"));
      options_.form = is_journal ? log_form::journal : log_form::text;
    }
    if (options_.form == log_form::journal) journal_.emplace();
  }

  void write(const log_entry& entry) const {
    if (entry.level < options_.level) return;
    if (journal_ && journal_->send(observability::journal_datagram(entry))) return;
    const auto now = std::chrono::system_clock::now();
    const bool is_json = options_.form == log_form::json;
    std::string line =
        is_json ? observability::json_line(entry, now) : observability::text_line(entry);
    if (!options_.file.empty()) {
      const std::string dated = is_json ? line : observability::to_iso_8601(now) + ' ' + line;
      if (!append(options_.file, dated)) return;
    }
    // A closed stderr must not end the shard.
    static_cast<void>(io::write_all(descriptor_, line));
  }

 private:
  log_options options_;
  int descriptor_;
  std::optional<journal> journal_;
};

log_options observability::with_environment(log_options options,
                                            std::vector<std::string>& problems) {
  std::string problem = read_log_variable(environment("KCLXX_LOG"), options);
  if (!problem.empty()) problems.push_back(std::move(problem));
  if (const std::string file = environment("KCLXX_LOG_FILE"); !file.empty()) options.file = file;
  return options;
}

log_writer::log_writer(const log_options& options, int descriptor) {
  std::vector<std::string> reported_by_run;
  state_ = std::make_shared<const state>(observability::with_environment(options, reported_by_run),
                                         descriptor);
}

void log_writer::operator()(const log_entry& entry) const noexcept {
  try {
    state_->write(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line must not end the shard
  }
}

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
#include "observability/log_writer.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "base/arrival_time.hpp"
#include "base/printable.hpp"
#include "io/descriptor.hpp"
#include "io/lines.hpp"
#include "protocol/json_string.hpp"

namespace kclxx::observability {

namespace {

// Kinesis allows 128 characters. A longer name is no shard's.
constexpr std::size_t longest_shard_id = 256;

std::optional<log_level> level_of(std::string_view name) {
  for (std::size_t i = 0; i < detail::level_names.size(); ++i) {
    if (name == detail::level_names.at(i)) return static_cast<log_level>(i);
  }
  return std::nullopt;
}

void append_member(std::string& out, const char* name, std::string_view value) {
  out.append(out.empty() ? "{\"" : ",\"").append(name).append("\":");
  protocol::append_quoted(out, value);
}

/// The log quotes records. In a directory where further users may write, a link could lead it into
/// a wrong file, a FIFO without a reader could hold it up, and a user's own file would let that
/// user read it.
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

std::string text_line(const log_entry& entry) {
  std::string line = "kclxx ";
  if (!entry.shard_id.empty()) line += detail::printable(entry.shard_id, longest_shard_id) + " ";
  line.append(detail::level_name(entry.level)).append(": ");
  return line + detail::printable(entry.text) + "\n";
}

std::string json_line(const log_entry& entry, date time) {
  std::string line;
  append_member(line, "time", detail::to_iso_8601(time));
  append_member(line, "level", detail::level_name(entry.level));
  if (!entry.shard_id.empty()) append_member(line, "shard", entry.shard_id);
  if (entry.position) append_member(line, "position", to_string(*entry.position));
  append_member(line, "message", entry.text);
  return line.append("}\n");
}

std::string read_log_variable(std::string_view value, log_options& options) {
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view word = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));
    if (const auto level = level_of(word)) {
      options.level = *level;
    } else if (word == "text" || word == "json") {
      options.json = word == "json";
    } else {
      return "KCLXX_LOG: " + detail::quoted(word) +
             " is neither a level (info, warning, error) nor a form (text, json)";
    }
  }
  return {};
}

log_output::log_output(log_options options, int descriptor)
    : options_(std::move(options)), descriptor_(descriptor) {}

void log_output::write(const log_entry& entry) const noexcept {
  if (entry.level < options_.level) return;
  const auto now = std::chrono::system_clock::now();
  const bool is_json = options_.json;
  const std::string line = is_json ? json_line(entry, now) : text_line(entry);
  // A closed stderr must not end the shard.
  if (!options_.file.empty()) {
    const std::error_code error =
        append(options_.file, is_json ? line : detail::to_iso_8601(now) + ' ' + line);
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

}  // namespace kclxx::observability

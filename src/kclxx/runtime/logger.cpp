// SPDX-License-Identifier: Apache-2.0
#include "runtime/logger.hpp"

#include <poll.h>
#include <string>

#include "io/line_writer.hpp"

namespace kclxx::runtime {

namespace {

const char* name(log_level level) {
  switch (level) {
    case log_level::info:
      return " info: ";
    case log_level::warning:
      return " warning: ";
    case log_level::error:
      return " error: ";
  }
  return " ";
}

}  // namespace

void log_to(int descriptor, const log_entry& entry) noexcept {
  try {
    std::string line = "kclxx";
    if (!entry.shard_id.empty()) line.append(" ").append(entry.shard_id);
    line.append(name(entry.level)).append(entry.text).append("\n");
    // A closed descriptor must not end the shard.
    static_cast<void>(io::write_all(descriptor, line));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line must not end the shard
  }
}

void log_to_if_writable(int descriptor, const log_entry& entry) noexcept {
  pollfd writable{descriptor, POLLOUT, 0};
  if (::poll(&writable, 1, 0) == 1) log_to(descriptor, entry);
}

}  // namespace kclxx::runtime

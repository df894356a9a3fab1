// SPDX-License-Identifier: Apache-2.0
#include "runtime/logger.hpp"

#include <unistd.h>

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

void logger::set_shard(const std::string& shard_id) {
  const std::lock_guard lock(mutex_);
  shard_id_ = shard_id;
}

void logger::operator()(log_level level, std::string_view text) const noexcept {
  try {
    if (destination_) {
      destination_(level, text);
      return;
    }
    std::string line = "kclxx";
    {
      const std::lock_guard lock(mutex_);
      if (!shard_id_.empty()) line.append(" ").append(shard_id_);
    }
    line.append(name(level)).append(text).append("\n");
    // A closed stderr must not end the shard.
    static_cast<void>(io::write_all(STDERR_FILENO, line));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line must not end the shard
  }
}

}  // namespace kclxx::runtime

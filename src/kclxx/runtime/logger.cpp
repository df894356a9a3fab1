// SPDX-License-Identifier: Apache-2.0
#include "runtime/logger.hpp"

#include <string>
#include <string_view>
#include <unistd.h>

#include "base/printable.hpp"
#include "io/line_writer.hpp"
#include "observability/log_format.hpp"

namespace kclxx::runtime {

void log(const run_options& options, log_level level, const std::string& text) {
  const log_entry entry{level, {}, detail::printable(text)};
  try {
    if (options.log) return options.log(entry);
  } catch (...) {  // NOLINT(bugprone-empty-catch): it goes to stderr, as without a function
  }
  const std::string line = observability::text_line(entry);
  std::string_view rest = line;
  // Unbuffered, so that std::_Exit loses nothing; a closed descriptor must not end the shard.
  static_cast<void>(io::write_now(STDERR_FILENO, rest));
}

void log_failure(const run_options& options, const std::exception& error) {
  log(options, log_level::error, std::string("cannot serve the daemon: ") + error.what());
}

}  // namespace kclxx::runtime

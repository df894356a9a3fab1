// SPDX-License-Identifier: Apache-2.0
#include "runtime/logger.hpp"

#include <string>
#include <string_view>

#include "io/line_writer.hpp"
#include "observability/log_format.hpp"

namespace kclxx::runtime {

void log_now(int descriptor, const log_entry& entry) noexcept {
  try {
    const std::string line = observability::text_line(entry);
    std::string_view rest = line;
    // A closed descriptor must not end the shard.
    static_cast<void>(io::write_now(descriptor, rest));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line must not end the shard
  }
}

}  // namespace kclxx::runtime

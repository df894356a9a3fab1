// SPDX-License-Identifier: Apache-2.0
#include "runtime/logger.hpp"

#include <poll.h>

#include "io/line_writer.hpp"
#include "observability/log_format.hpp"

namespace kclxx::runtime {

void log_to(int descriptor, const log_entry& entry) noexcept {
  try {
    // A closed descriptor must not end the shard.
    static_cast<void>(io::write_all(descriptor, observability::text_line(entry)));
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log line must not end the shard
  }
}

void log_to_if_writable(int descriptor, const log_entry& entry) noexcept {
  pollfd writable{descriptor, POLLOUT, 0};
  if (::poll(&writable, 1, 0) == 1) log_to(descriptor, entry);
}

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
#include "io/forked_copy.hpp"

#include <cstdlib>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

#include "io/line_writer.hpp"

namespace kclxx::io {

void forked_copy::leave(const std::string& shard_id) {
  static_cast<void>(write_all(
      STDERR_FILENO, "kclxx " + shard_id +
                         " error: a forked copy of the process returned from user code and leaves; "
                         "end it there with exec or _exit\n"));
  std::_Exit(static_cast<int>(exit_status::daemon_gone));
}

}  // namespace kclxx::io

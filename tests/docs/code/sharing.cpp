// SPDX-License-Identifier: Apache-2.0
// The program of docs/sharing.md that the daemon does not start.
#include <unistd.h>

#include <kclxx/kclxx.hpp>
#include <kclxx/run.hpp>

void count(const kclxx::record& event);

void serve_shard(int connection) {
  const kclxx::exit_status status = kclxx::serve(
      {.input = connection, .output = connection, .stream_name = "events"}, kclxx::each(count));
  ::close(connection);
  if (status != kclxx::exit_status::ok) ::_exit(static_cast<int>(status));
}

// SPDX-License-Identifier: Apache-2.0
#include "io/copy_guard.hpp"

#include <pthread.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>

#include "io/lines.hpp"

namespace kclxx::io {

std::atomic<unsigned> copy_guard::current_generation = 0;

void copy_guard::watch() noexcept {
  // The handler runs in the copy alone. posix_spawn, system and popen call none.
  static const int watched = ::pthread_atfork(
      nullptr, nullptr, [] { current_generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(watched);
}

void copy_guard::leave() noexcept {
  static_cast<void>(write_all(STDERR_FILENO,
                              "kclxx error: a forked copy of the process returned from user code "
                              "and leaves; end it there with exec or _exit\n"));
  ::_exit(static_cast<int>(exit_status::daemon_gone));
}

}  // namespace kclxx::io

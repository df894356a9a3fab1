// SPDX-License-Identifier: Apache-2.0
#include "base/stoppable_sleep.hpp"

#include <condition_variable>
#include <mutex>

namespace kclxx::detail {

bool sleep_until(std::chrono::steady_clock::time_point deadline, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, deadline, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace kclxx::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace kclxx::detail {

/// Returns true at the deadline, false as soon as `stop` stops. Blocking: yes.
inline bool sleep_until(std::chrono::steady_clock::time_point deadline,
                        const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_until(lock, stop, deadline, [] { return false; });
  return !stop.stop_requested();
}

}  // namespace kclxx::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <kclxx/detail/shard_service.hpp>

namespace kclxx::detail {

/// Threads of the machine. A function that throws ends the process.
class real_thread_pool final : public detail::thread_pool {
 public:
  /// Errors: std::system_error.
  explicit real_thread_pool(std::size_t threads);
  ~real_thread_pool() override;

  void post(std::function<void()> function) override;

 private:
  void run();
  void end();

  std::mutex mutex_;
  std::condition_variable has_work_;
  std::deque<std::function<void()>> functions_;
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kclxx::detail

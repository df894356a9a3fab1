// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <thread>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include <kclxx/shard_context.hpp>

namespace kclxx::asio::detail {

/// The io_context of one shard, and the thread that runs it. One thread, so that the coroutines of
/// a shard need no lock.
///
/// Errors: an exception that leaves a function on the io_context, such as a completion handler of
/// the program's, is treated like one from a timer of the shard; the thread continues.
/// Thread safety: executor() may be called from any thread.
/// Lifetime: the shard_context must outlive it. Functions that were posted and have not run are
/// destroyed with it, so nothing may still wait for them.
class context_thread {
 public:
  /// Errors: std::system_error when the thread cannot be started.
  explicit context_thread(const shard_context& shard)
      : work_(boost::asio::make_work_guard(context_)), thread_([this, &shard] { run(shard); }) {}
  context_thread(const context_thread&) = delete;
  context_thread& operator=(const context_thread&) = delete;
  /// What still waits is destroyed, and not called.
  /// Blocking: until the function that runs has returned.
  ~context_thread() {
    context_.stop();
    thread_.join();
  }
  /// Lifetime: an executor must not be used after this object's end.
  [[nodiscard]] boost::asio::any_io_executor executor() { return context_.get_executor(); }

 private:
  /// On the thread, until the destructor stops the io_context.
  void run(const shard_context& shard) {
    for (;;) {
      try {
        context_.run();
        return;
      } catch (...) {
        // On the callbacks' thread, which alone may end the session.
        shard.after(std::chrono::milliseconds(0),
                    [thrown = std::current_exception()] { std::rethrow_exception(thrown); });
      }
    }
  }

  boost::asio::io_context context_{1};
  // Without it run() would return as soon as no coroutine waits.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::thread thread_;
};

}  // namespace kclxx::asio::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <ctime>
#include <pthread.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/eventually.hpp"
#include "support/scripted_daemon.hpp"
#include "support/text.hpp"  // IWYU pragma: export

namespace kclxx::test {

/// children/test_child.cpp, which does what a record's text names.
inline const std::string child = KCLXX_TEST_CHILD;

inline void start(scripted_daemon& daemon) {
  daemon.initialize();
  daemon.expect_status("initialize");
}

/// A child with these flags that was initialized.
class started_child : public scripted_daemon {
 public:
  explicit started_child(std::vector<std::string> flags = {}, const start_options& options = {})
      : scripted_daemon(command(flags), options) {
    start(*this);
  }

 private:
  static std::vector<std::string> command(std::vector<std::string>& flags) {
    flags.insert(flags.begin(), child);
    return std::move(flags);
  }
};

/// While it exists, counts each SIGTERM to this process, which plays a daemon. It interrupts no
/// call of the test. Make it while the process has one thread.
class termination_count {
 public:
  termination_count() {
    ::sigemptyset(&terminate_);
    ::sigaddset(&terminate_, SIGTERM);
    ::pthread_sigmask(SIG_BLOCK, &terminate_, &before_);
    counter_ = std::jthread([this](const std::stop_token& stop) {
      constexpr timespec look{0, 5'000'000};
      while (!stop.stop_requested()) {
        if (::sigtimedwait(&terminate_, nullptr, &look) == SIGTERM) ++count_;
      }
    });
  }
  ~termination_count() {
    counter_ = {};
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  termination_count(const termination_count&) = delete;
  termination_count& operator=(const termination_count&) = delete;

  /// Waits for the first SIGTERM, which may be on its way to the thread.
  [[nodiscard]] int await_first() const {
    static_cast<void>(eventually([this] { return count_ > 0; }));
    return count_;
  }
  [[nodiscard]] int get() const { return count_; }

 private:
  sigset_t terminate_{};
  sigset_t before_{};
  std::atomic<int> count_ = 0;
  std::jthread counter_;
};

}  // namespace kclxx::test

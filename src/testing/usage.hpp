// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace kclxx::testing {

/// Reports what a test does wrong: where it is done, and once more at the end of the verb, since a
/// callback's exceptions are caught and a worker thread's may be.
class usage {
 public:
  /// `what` is a literal. Thread safety: any thread.
  void require_owner(const char* what) {
    if (std::this_thread::get_id() == owner_) return;
    called_elsewhere_ = what;
    throw std::logic_error(what + elsewhere());
  }

  /// Inside a callback.
  [[noreturn]] void refuse_in_callback(const std::string& why) {
    refused_ = why;
    throw std::logic_error(why);
  }

  void raise_remembered() {
    if (const auto why = std::exchange(refused_, std::nullopt)) throw std::logic_error(*why);
    if (const char* what = called_elsewhere_.exchange(nullptr)) {
      throw std::logic_error(what + elsewhere());
    }
  }

 private:
  static std::string elsewhere() {
    return " was called on another thread than the one that made the kclxx::testing::daemon: the "
           "test kit runs everything on that one (docs/testing.md describes how to test a "
           "processor with worker threads)";
  }

  std::thread::id owner_ = std::this_thread::get_id();
  std::optional<std::string> refused_;
  std::atomic<const char*> called_elsewhere_ = nullptr;
};

}  // namespace kclxx::testing

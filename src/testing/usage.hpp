// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace kclxx::testing {

/// Reports what a test does wrong: where it is done, and once more at the end of the kit's
/// function, since a callback's exceptions are caught and a worker thread's may be.
class usage {
 public:
  /// `function` is a literal. Thread safety: any thread.
  void require_owner(const char* function) {
    if (!is_owner(function)) throw std::logic_error(function + elsewhere());
  }
  /// For calls whose caller may be unable to pass an exception on: only the end of the kit's
  /// function reports it. The call must then change nothing. Thread safety: any thread.
  [[nodiscard]] bool is_owner(const char* function) noexcept {
    if (acting() == owner_) return true;
    called_elsewhere_ = function;
    return false;
  }

  /// On a thread of the kit: what it does is done for the test's thread.
  void adopt_thread() noexcept { acting() = owner_; }

  void remember(std::string reason) { refused_ = std::move(reason); }
  /// Inside a callback.
  [[noreturn]] void refuse_in_callback(const std::string& reason) {
    remember(reason);
    throw std::logic_error(reason);
  }

  /// Another thread's call comes first, since what else went wrong may follow from it.
  void raise_remembered() {
    const char* const function = called_elsewhere_.exchange(nullptr);
    const auto why = std::exchange(refused_, std::nullopt);
    if (function != nullptr) throw std::logic_error(function + elsewhere());
    if (why) throw std::logic_error(*why);
  }

 private:
  static std::string elsewhere() {
    return " was called on another thread than the one that made the kclxx::testing::daemon: the "
           "test kit runs one thing at a time, on that thread and on its own (docs/testing.md "
           "describes how to test a processor with worker threads)";
  }
  /// The thread for which the present one acts.
  static std::thread::id& acting() noexcept {
    static thread_local std::thread::id thread = std::this_thread::get_id();
    return thread;
  }

  std::thread::id owner_ = acting();
  std::optional<std::string> refused_;
  std::atomic<const char*> called_elsewhere_ = nullptr;
};

}  // namespace kclxx::testing

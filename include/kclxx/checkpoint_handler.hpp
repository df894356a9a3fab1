// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace kclxx {

/// A move-only function of a checkpoint's outcome, for checkpointer::async_checkpoint:
///
///     checkpointer.async_checkpoint(last, [](std::error_code ec) {
///       if (ec && ec != kclxx::checkpoint_condition::lease_gone) report(ec.message());
///     });
///
/// Empty by default: nothing is called. async_checkpoint documents on which thread it is called.
///
/// Errors: an exception of the function is treated like one from a callback.
/// Thread safety: none.
/// Lifetime: it owns the function, which may own what cannot be copied, such as a std::promise.
class checkpoint_handler {
 public:
  /// An empty one.
  checkpoint_handler() = default;
  /// Takes the function; what it returns is ignored.
  /// Errors: std::bad_alloc, and what the function's move or copy constructor throws.
  template <class Function>
  requires(!std::is_same_v<std::decay_t<Function>, checkpoint_handler> &&
           std::is_invocable_v<std::decay_t<Function>&, std::error_code>)
      // NOLINTNEXTLINE(google-explicit-constructor): as std::function
      checkpoint_handler(Function&& function)
      : function_(
            std::make_unique<holder<std::decay_t<Function>>>(std::forward<Function>(function))) {}

  /// Precondition: it is not empty.
  /// Errors: what the function throws.
  /// Blocking: as long as the function takes.
  void operator()(std::error_code result) { function_->call(result); }
  /// False for an empty or moved-from one.
  explicit operator bool() const noexcept { return function_ != nullptr; }

 private:
  struct callable {
    callable() = default;
    callable(const callable&) = delete;
    callable& operator=(const callable&) = delete;
    virtual ~callable() = default;
    virtual void call(std::error_code result) = 0;
  };
  template <class Function>
  struct holder final : callable {
    template <class From>
    explicit holder(From&& source) : function(std::forward<From>(source)) {}
    void call(std::error_code result) override { function(result); }
    Function function;
  };

  std::unique_ptr<callable> function_;
};

}  // namespace kclxx

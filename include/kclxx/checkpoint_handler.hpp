// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <system_error>
#include <type_traits>
#include <utility>

namespace kclxx {

/// A move-only function of a checkpoint's outcome. Empty by default. The library calls it on
/// a thread of its own. kclxx/asio.hpp has async_checkpoint with Asio's completion tokens.
/// Thread safety: none.
class checkpoint_handler {
 public:
  checkpoint_handler() = default;
  template <class Function>
  requires(!std::is_same_v<std::decay_t<Function>, checkpoint_handler> &&
           std::is_invocable_v<std::decay_t<Function>&, std::error_code>)
      // NOLINTNEXTLINE(google-explicit-constructor): as std::function
      checkpoint_handler(Function&& function)
      : function_(
            std::make_unique<holder<std::decay_t<Function>>>(std::forward<Function>(function))) {}

  /// Precondition: it is not empty.
  void operator()(std::error_code result) { function_->call(result); }
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
    explicit holder(From&& from) : function(std::forward<From>(from)) {}
    void call(std::error_code result) override { function(result); }
    Function function;
  };

  std::unique_ptr<callable> function_;
};

}  // namespace kclxx

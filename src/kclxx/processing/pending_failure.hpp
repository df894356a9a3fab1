// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>
#include <utility>

namespace kclxx::processing {

/// What ends the processing: the first failure, until a callback or a timer throws it.
///
/// Thread safety: none.
class pending_failure {
 public:
  /// When it leaves a callback, or a timer if none is open.
  enum class kind {
    at_once,
    after_handlers,  ///< those that run have drain_timeout to end
    lease_gone,      ///< at once, without a checkpoint
  };

  /// Returns false, and leaves `why`, when it is not the first.
  bool set(std::exception_ptr& why, kind what) noexcept {
    if (kind_) return false;
    why_ = std::move(why);
    kind_ = what;
    return true;
  }
  /// Stays true when it has been thrown.
  [[nodiscard]] bool is_set() const noexcept { return kind_.has_value(); }
  /// Has a value until it is taken.
  [[nodiscard]] std::optional<kind> pending() const noexcept { return why_ ? kind_ : std::nullopt; }
  /// For the thread that throws it, which then has the only reference. Precondition: pending().
  [[nodiscard]] std::exception_ptr take() noexcept { return std::exchange(why_, nullptr); }

 private:
  std::optional<kind> kind_;
  std::exception_ptr why_;  // until it is taken
};

}  // namespace kclxx::processing

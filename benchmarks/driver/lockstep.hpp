// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "measured_child.hpp"

namespace bench {

/// The daemon's side: an action, then the child's lines until its status, each checkpoint answered
/// with success.
class lockstep {
 public:
  explicit lockstep(measured_child& to) : child_(to) {}

  /// Sends `line` (with its newline) and returns when the child has answered action `name`. A
  /// checkpoint may only be at `position`, or a null one: a child that checkpoints anything else
  /// has not processed the batch. Errors: std::runtime_error with what the child sent instead.
  void exchange(std::string_view name, std::string_view line, std::string_view position = {});

  [[nodiscard]] std::uint64_t checkpoints() const noexcept { return checkpoints_; }

 private:
  void answer_checkpoint(std::string_view position);

  measured_child& child_;
  std::uint64_t checkpoints_ = 0;
};

}  // namespace bench

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>

#include "tool/replay/faults.hpp"

namespace kclxx::replay {

/// Who answers the child's checkpoints.
enum class answers_from {
  recorded,  ///< the model, with the failures that the transcript has
  model,     ///< the model alone: checkpoints fail only where the child is wrong
};

/// What the child's answers are compared with.
enum class expectation {
  none,
  answers,         ///< each status and checkpoint, with its position, in order
  final_position,  ///< only the last position that was persisted
};

struct options {
  answers_from answers = answers_from::recorded;
  expectation expected = expectation::none;
  bool keeps_timeline = false;
  replay::faults faults{};
  /// For each action, and for the time between the end of the input and the child's exit.
  std::chrono::milliseconds timeout = std::chrono::seconds(60);
};

}  // namespace kclxx::replay

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tool/random_numbers.hpp"

namespace kclxx::simulation {

class random_source : public tool::random_numbers {
 public:
  using random_numbers::random_numbers;

  /// True in `percent` of the cases.
  bool chance(unsigned percent) { return below(100) < percent; }
};

}  // namespace kclxx::simulation

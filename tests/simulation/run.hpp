// SPDX-License-Identifier: Apache-2.0
// What a run from one seed has: random numbers, a trace, and violations.
#pragma once

#include <iostream>
#include <stdexcept>

#include "tool/random_numbers.hpp"

namespace kclxx::simulation {

class random_source : public tool::random_numbers {
 public:
  using random_numbers::random_numbers;

  /// True in `percent` of the cases.
  bool chance(unsigned percent) { return below(100) < percent; }
};

/// Prints what happens, if it is wanted: at once, so that a run which never ends shows where it is.
class trace {
 public:
  explicit trace(bool wanted) : wanted_(wanted) {}
  template <class Text>
  void note(Text text) {
    if (wanted_) std::cout << text() << std::endl;
  }

 private:
  bool wanted_;
};

/// An invariant does not hold. The text begins with the invariant's name.
class violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace kclxx::simulation

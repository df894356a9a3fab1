// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iostream>

namespace kclxx::simulation {

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

}  // namespace kclxx::simulation

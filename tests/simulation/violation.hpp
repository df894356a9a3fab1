// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>

namespace kclxx::simulation {

/// An invariant does not hold. The text begins with the invariant's name.
class violation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace kclxx::simulation

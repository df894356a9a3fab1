// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kclxx::simulation {

/// SplitMix64: the same numbers from the same seed with every compiler and library, which the
/// standard distributions do not promise.
class random_source {
 public:
  explicit random_source(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  /// From 0 to `bound` - 1.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// True in `percent` of the cases.
  bool chance(unsigned percent) { return below(100) < percent; }

 private:
  std::uint64_t state_;
};

}  // namespace kclxx::simulation

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace kclxx::tool {

/// SplitMix64: the same numbers for the same seed with every compiler and library, which the
/// standard's distributions do not promise. The tool and the simulation draw from it.
class random_numbers {
 public:
  explicit random_numbers(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15); }
  /// A number from 0 to `end` - 1; 0 when `end` is 0.
  std::uint64_t below(std::uint64_t end) noexcept { return end == 0 ? 0 : next() % end; }
  /// A number from `first` to `last`, both included.
  std::uint64_t between(std::uint64_t first, std::uint64_t last) noexcept {
    return first + below(last - first + 1);
  }
  /// A number from 0 to just below 1.
  double fraction() noexcept {
    return static_cast<double>(next() >> 11) * 0x1p-53;  // 53 bits, what a double has
  }

  /// Mixes the bits of a value, so that small differences between two values spread over all bits.
  static std::uint64_t mix(std::uint64_t value) noexcept {
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace kclxx::replay {

/// Counts durations, in bins that are 1/32 of their value wide: any number of them in 15 KiB, and
/// each quantile at most 3.2 % too large. max() is exact.
class latency_histogram {
 public:
  /// What is below zero counts as zero.
  void add(std::chrono::nanoseconds duration) noexcept;
  void add(const latency_histogram& other) noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] std::chrono::nanoseconds max() const noexcept {
    return std::chrono::nanoseconds(max_);
  }
  /// The duration that this part of all does not exceed; 0 when there is none.
  /// Precondition: 0 < part <= 1.
  [[nodiscard]] std::chrono::nanoseconds quantile(double part) const noexcept;

 private:
  // Values below 2^6 have a bin each; above, 2^5 bins for each power of two.
  static constexpr unsigned bits = 5;
  static constexpr std::size_t bins = (64 - bits + 1) << bits;

  static std::size_t bin_of(std::uint64_t value) noexcept;
  static std::uint64_t end_of(std::size_t bin) noexcept;

  std::array<std::uint64_t, bins> counts_{};
  std::uint64_t count_ = 0;
  std::int64_t max_ = 0;
};

}  // namespace kclxx::replay

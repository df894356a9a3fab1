// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/latency_histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kclxx::replay {

std::size_t latency_histogram::bin_of(std::uint64_t value) noexcept {
  if (value < (std::uint64_t{1} << bits)) return static_cast<std::size_t>(value);
  const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - bits;
  return (std::size_t{shift} << bits) + static_cast<std::size_t>(value >> shift);
}

// The largest value in the bin.
std::uint64_t latency_histogram::end_of(std::size_t bin) noexcept {
  if (bin < (std::size_t{1} << bits)) return bin;
  const std::size_t shift = (bin >> bits) - 1;
  const std::uint64_t top = bin - (shift << bits);
  return ((top + 1) << shift) - 1;
}

void latency_histogram::add(std::chrono::nanoseconds duration) noexcept {
  const std::int64_t value = std::max<std::int64_t>(duration.count(), 0);
  ++counts_[bin_of(static_cast<std::uint64_t>(value))];
  ++count_;
  max_ = std::max(max_, value);
}

void latency_histogram::add(const latency_histogram& other) noexcept {
  for (std::size_t i = 0; i < bins; ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

std::chrono::nanoseconds latency_histogram::quantile(double part) const noexcept {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(part * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < bins; ++i) {
    seen += counts_[i];
    if (seen >= wanted && seen > 0) {
      const auto end = std::min(end_of(i), static_cast<std::uint64_t>(max_));
      return std::chrono::nanoseconds(static_cast<std::int64_t>(end));
    }
  }
  return {};
}

}  // namespace kclxx::replay

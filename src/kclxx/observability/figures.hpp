// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kclxx/metrics_recorder.hpp>

namespace kclxx::observability {

using metric = metrics_recorder::metric;

inline constexpr std::size_t family_count = 0
#define KCLXX_METRIC(...) +1  // NOLINT(bugprone-macro-parentheses): a sum
#include <kclxx/detail/metric_families.inc>
#undef KCLXX_METRIC
    ;
inline constexpr std::size_t bucket_count = 14;

struct histogram_figures {
  std::array<std::uint64_t, bucket_count + 1> counts{};  // of each bucket alone; the last is +Inf
  double sum = 0;
  [[nodiscard]] std::uint64_t count() const noexcept;
};

/// The metrics of a shard since its lease began. A value.
struct figures {
  struct labelled {
    std::string label;
    std::uint64_t value;
  };

  figures();
  [[nodiscard]] std::uint64_t counter(metric family) const noexcept;  // the sum of all labels
  [[nodiscard]] std::uint64_t counter(metric family, std::string_view label) const noexcept;
  [[nodiscard]] double gauge(metric family) const noexcept;
  [[nodiscard]] const histogram_figures& histogram(metric family) const noexcept;

  std::array<std::uint64_t, family_count> counters{};
  std::array<double, family_count> gauges{};
  // Families with a label, and families that are histograms; in the order of the families.
  std::vector<std::pair<metric, std::vector<labelled>>> labels;
  std::vector<std::pair<metric, histogram_figures>> histograms;
};

/// The fewest digits that read back as the same value.
std::string to_text(double value);

/// Records metrics as figures. Thread safety: none.
class figures_recorder final : public metrics_recorder {
 public:
  [[nodiscard]] const figures& now() const noexcept { return figures_; }

 private:
  void add(metric family, std::uint64_t amount, std::string_view label_value) override;
  void set(metric family, double value) override;
  void observe(metric family, double seconds) override;

  figures figures_;
};

}  // namespace kclxx::observability

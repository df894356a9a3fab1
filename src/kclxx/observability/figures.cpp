// SPDX-License-Identifier: Apache-2.0
#include "observability/figures.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <numeric>

namespace kclxx::observability {

namespace {

std::size_t index(metric family) noexcept { return static_cast<std::size_t>(family); }

template <class Pairs>
auto& entry_of(Pairs& pairs, metric family) noexcept {
  return std::find_if(pairs.begin(), pairs.end(),
                      [&](const auto& entry) { return entry.first == family; })
      ->second;
}

}  // namespace

std::uint64_t histogram_figures::count() const noexcept {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

figures::figures() {
  const auto families = metrics_recorder::families();
  for (std::size_t i = 0; i < families.size(); ++i) {
    const auto family = static_cast<metric>(i);
    if (families[i].type == metrics_recorder::metric_type::histogram)
      histograms.emplace_back(family, histogram_figures());
    if (families[i].type != metrics_recorder::metric_type::counter || families[i].label.empty())
      continue;
    auto& values = labels.emplace_back(family, std::vector<labelled>()).second;
    for (const std::string_view value : families[i].label_values) {
      values.push_back({std::string(value), 0});
    }
  }
  gauges[index(metric::build_info)] = 1;
}

std::uint64_t figures::counter(metric family) const noexcept {
  if (metrics_recorder::families()[index(family)].label.empty()) return counters[index(family)];
  const auto& values = entry_of(labels, family);
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const labelled& term) { return sum + term.value; });
}

std::uint64_t figures::counter(metric family, std::string_view label) const noexcept {
  const auto& values = entry_of(labels, family);
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const labelled& value) { return value.label == label; });
  return found == values.end() ? 0 : found->value;
}

double figures::gauge(metric family) const noexcept { return gauges[index(family)]; }

const histogram_figures& figures::histogram(metric family) const noexcept {
  return entry_of(histograms, family);
}

std::string to_text(double value) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), value).ptr;
  return {digits, end};
}

void figures_recorder::add(metric family, std::uint64_t amount, std::string_view label_value) {
  if (label_value.empty()) {
    figures_.counters[index(family)] += amount;
    return;
  }
  auto& values = entry_of(figures_.labels, family);
  const auto found =
      std::find_if(values.begin(), values.end(),
                   [&](const figures::labelled& value) { return value.label == label_value; });
  if (found == values.end()) {
    values.push_back({std::string(label_value), amount});
  } else {
    found->value += amount;
  }
}

void figures_recorder::set(metric family, double value) { figures_.gauges[index(family)] = value; }

void figures_recorder::observe(metric family, double seconds) {
  const auto bounds = metrics_recorder::histogram_buckets();
  const auto bucket = std::lower_bound(bounds.begin(), bounds.end(), seconds) - bounds.begin();
  histogram_figures& into = entry_of(figures_.histograms, family);
  ++into.counts.at(static_cast<std::size_t>(bucket));
  into.sum += seconds;
}

}  // namespace kclxx::observability

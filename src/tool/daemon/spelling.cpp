// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/spelling.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace kclxx::tool {

namespace {

/// How many letters must be inserted, removed or changed (Levenshtein).
std::size_t distance(std::string_view source, std::string_view target) {
  std::vector<std::size_t> row(target.size() + 1);
  for (std::size_t i = 0; i <= target.size(); ++i) row[i] = i;
  for (std::size_t i = 0; i < source.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < target.size(); ++j) {
      const std::size_t changed = diagonal + (lower(source[i]) == lower(target[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[target.size()];
}

}  // namespace

std::string nearest(std::string_view text, std::span<const std::string_view> names) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, text.size() / 5) + 1;
  for (const std::string_view name : names) {
    const std::size_t steps = distance(text, name);
    if (steps < least) {
      least = steps;
      best = name;
    }
  }
  return std::string(best);
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/diagnostics.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tool/daemon/property_table.hpp"

namespace kclxx::tool {

diagnostic diagnostic_at(const property& place, severity level, std::string problem,
                         std::string reason, std::string fix) {
  return {level, place.line, place.origin, std::move(problem), std::move(reason), std::move(fix)};
}

const property* effective(const properties& all, std::string_view key, kcl_version kcl) {
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const property& one) {
    return canonical_key(one.key, kcl) == key;
  });
  return found == all.rend() ? nullptr : &*found;
}

std::vector<diagnostic> check(const properties& all, kcl_version kcl, const machine& system) {
  std::vector<diagnostic> found;
  check_keys(all, kcl, found);
  check_duplicates(all, kcl, found);
  check_values(all, kcl, found);
  check_executable(all, system.look, found);
  check_required(all, kcl, found);
  check_defaults(all, kcl, system, found);
  const auto position = [](const diagnostic& one) {
    return one.line != 0 ? one.line : std::numeric_limits<std::size_t>::max();
  };
  // Not std::stable_sort: libstdc++ 12 allocates for it with what C++20 has deprecated, of which
  // clang warns.
  std::vector<diagnostic> sorted;
  for (diagnostic& one : found) {
    const auto after = std::upper_bound(
        sorted.begin(), sorted.end(), position(one),
        [&](std::size_t place, const diagnostic& other) { return place < position(other); });
    sorted.insert(after, std::move(one));
  }
  return sorted;
}

}  // namespace kclxx::tool

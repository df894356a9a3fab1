// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/diagnostics.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "tool/daemon/property_table.hpp"

namespace kclxx::tool {

diagnostic diagnostic_at(const property& place, severity level, std::string what, std::string why,
                         std::string fix) {
  return {level, place.line, place.origin, std::move(what), std::move(why), std::move(fix)};
}

const property* effective(const properties& all, std::string_view key, kcl_version which) {
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const property& one) {
    return canonical_key(one.key, which) == key;
  });
  return found == all.rend() ? nullptr : &*found;
}

std::vector<diagnostic> check(const properties& all, kcl_version which, const machine& where) {
  std::vector<diagnostic> found;
  check_keys(all, which, found);
  check_duplicates(all, which, found);
  check_values(all, which, found);
  check_executable(all, where.look, found);
  check_required(all, which, found);
  check_defaults(all, which, where, found);
  check_patience(all, which, where.patience, found);
  const auto position = [](const diagnostic& one) {
    return one.line != 0 ? one.line : std::numeric_limits<std::size_t>::max();
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const diagnostic& left, const diagnostic& right) {
                     return position(left) < position(right);
                   });
  return found;
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/overrides.hpp"

#include <algorithm>
#include <string_view>

#include "tool/daemon/property_table.hpp"

namespace kclxx::tool {

namespace {

constexpr std::string_view prefix = "KCLXX_PROPERTY_";

std::string key_of(std::string_view name) {
  std::string key;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_dot = name.substr(i, 2) == "__";
    key.push_back(is_dot ? '.' : name[i]);
    i += is_dot ? 1 : 0;
  }
  return key;
}

}  // namespace

properties overrides_in(const std::vector<std::string>& environment) {
  properties found;
  for (const std::string_view one : environment) {
    const auto equals = one.find('=');
    if (!one.starts_with(prefix) || equals == std::string_view::npos) continue;
    const std::string_view name = one.substr(0, equals);
    if (name.size() == prefix.size()) {
      throw properties_error(0, std::string(prefix) + " in the environment names no key");
    }
    found.push_back({key_of(name.substr(prefix.size())), std::string(one.substr(equals + 1)), 0,
                     std::string(name)});
  }
  std::sort(found.begin(), found.end(),
            [](const property& left, const property& right) { return left.key < right.key; });
  return found;
}

properties with_overrides(properties all, const properties& overrides, kcl_version kcl) {
  properties kept;
  for (const property& one : overrides) {
    const std::string key = canonical_key(one.key, kcl);
    const auto replaced =
        std::erase_if(all, [&](const property& old) { return canonical_key(old.key, kcl) == key; });
    const bool is_mistaken = replaced == 0 && !is_known(one.key, kcl);
    if (!one.value.empty() || is_mistaken) kept.push_back(one);
  }
  all.insert(all.end(), kept.begin(), kept.end());
  return all;
}

}  // namespace kclxx::tool

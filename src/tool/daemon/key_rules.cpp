// SPDX-License-Identifier: Apache-2.0
// Keys that the daemon does not know, and keys that are there more than once.
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/property_table.hpp"
#include "tool/daemon/spelling.hpp"

namespace kclxx::tool {

namespace {

std::string nearest_key(std::string_view key, kcl_version kcl) {
  std::vector<std::string_view> keys;
  for (const property_row& row : property_table()) {
    if (row.type(kcl) != value_type::none) keys.push_back(row.key);
  }
  return nearest(key, keys);
}

std::string other_versions(std::string_view key, kcl_version kcl) {
  std::string names;
  for (const auto other : {kcl_version::kcl1, kcl_version::kcl2, kcl_version::kcl3}) {
    if (other == kcl || find_row(key, other) == nullptr) continue;
    names += (names.empty() ? "" : " and ") + std::string(name_of(other));
  }
  return names;
}

std::string advice_for(std::string_view key) {
  for (const property_hint& hint : property_hints()) {
    if (hint.key == key) return std::string(hint.advice);
  }
  return "";
}

diagnostic unknown(const property& one, kcl_version kcl) {
  const std::string in(name_of(kcl));
  const std::string ignored = "The daemon ignores it, without a warning.";
  const auto say = [&](const std::string& problem, const std::string& fix) {
    return diagnostic_at(one, severity::error, one.key + " " + problem, ignored, fix);
  };
  if (one.key.starts_with("\u00ef\u00bb\u00bf")) {
    return diagnostic_at(one, severity::error, "the file begins with a byte order mark",
                         "The daemon reads it as part of the first key, which it then ignores.",
                         "Save the file without it.");
  }
  for (const property_row& row : property_table()) {
    if (row.type(kcl) != value_type::none && lower(row.key) == lower(one.key)) {
      return say("is misspelt: keys are case-sensitive", "Write " + std::string(row.key) + ".");
    }
  }
  if (const std::string advice = advice_for(one.key); !advice.empty()) {
    return say("is not a key of " + in, advice);
  }
  const std::string near = nearest_key(one.key, kcl);
  const std::string suggestion = near.empty() ? "Remove it." : "Did you mean " + near + "?";
  if (const std::string others = other_versions(one.key, kcl); !others.empty()) {
    return say("is a key of " + others + ", not of " + in,
               near.empty() ? "Remove it." : suggestion + " Otherwise remove it.");
  }
  return say("is not a key of " + in, suggestion);
}

std::string place_of(const property& one) {
  return one.line != 0 ? "line " + std::to_string(one.line) : one.origin;
}

/// Different keys for one field of the daemon. The order in which it applies keys is that of a hash
/// table.
struct rival {
  std::string_view one;
  std::string_view other;
};
constexpr std::array<rival, 3> rivals{{
    {"workerId", "workerIdentifier"},
    {"initialPositionInStream", "initialPositionInStreamExtended"},
    {"initialPositionInStream", "timestampAtInitialPositionInStream"},
}};

}  // namespace

void check_keys(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  for (const property& one : all) {
    if (!is_known(one.key, kcl)) problems.push_back(unknown(one, kcl));
  }
}

void check_duplicates(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems) {
  std::map<std::string, const property*> later;
  std::vector<const property*> repeated(all.size());  // the next property of the same key
  for (std::size_t i = all.size(); i-- > 0;) {
    repeated[i] = std::exchange(later[canonical_key(all[i].key, kcl)], &all[i]);
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const property* const one = &all[i];
    const property* const next = repeated[i];
    if (next == nullptr) continue;
    if (next->key == one->key) {
      problems.push_back(diagnostic_at(
          *one, severity::warning, one->key + " is repeated (" + place_of(*next) + ")",
          "The last one counts; this one has no effect.", "Remove one of them."));
    } else {
      problems.push_back(
          diagnostic_at(*one, severity::error,
                        one->key + " is repeated as " + next->key + " (" + place_of(*next) + ")",
                        "Both set the same field, in an undefined order.", "Remove one of them."));
    }
  }
  for (const rival& pair : rivals) {
    const property* const one = effective(all, pair.one, kcl);
    const property* const other = effective(all, pair.other, kcl);
    if (one == nullptr || other == nullptr || find_row(other->key, kcl) == nullptr) continue;
    problems.push_back(diagnostic_at(
        *one, severity::error,
        one->key + " is set together with " + other->key + " (" + place_of(*other) + ")",
        "Both set the same field, in an undefined order.", "Remove one of them."));
  }
}

}  // namespace kclxx::tool

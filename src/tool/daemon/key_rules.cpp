// SPDX-License-Identifier: Apache-2.0
// Keys that the daemon does not know, and keys that are there more than once.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tool/daemon/ascii.hpp"
#include "tool/daemon/diagnostics.hpp"
#include "tool/daemon/property_table.hpp"

namespace kclxx::tool {

namespace {

/// How many letters must be put in, taken out or changed.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t i = 0; i <= to.size(); ++i) row[i] = i;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = diagonal + (lower(from[i]) == lower(to[j]) ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[to.size()];
}

std::string nearest_key(std::string_view key, kcl_version which) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, key.size() / 5) + 1;
  for (const property_row& row : property_table()) {
    if (row.type(which) == value_type::none) continue;
    const std::size_t steps = distance(key, row.key);
    if (steps < least) {
      least = steps;
      best = row.key;
    }
  }
  return std::string(best);
}

std::string other_versions(std::string_view key, kcl_version which) {
  std::string names;
  for (const auto other : {kcl_version::kcl1, kcl_version::kcl2, kcl_version::kcl3}) {
    if (other == which || find_row(key, other) == nullptr) continue;
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

diagnostic unknown(const property& one, kcl_version which) {
  const std::string in(name_of(which));
  const std::string ignored = "The daemon ignores it without a word.";
  const auto say = [&](const std::string& what, const std::string& fix) {
    return diagnostic_at(one, severity::error, one.key + " " + what, ignored, fix);
  };
  for (const property_row& row : property_table()) {
    if (row.type(which) != value_type::none && lower(row.key) == lower(one.key)) {
      return say("is misspelt: case counts", "Write " + std::string(row.key) + ".");
    }
  }
  if (const std::string advice = advice_for(one.key); !advice.empty()) {
    return say("is no key of " + in, advice);
  }
  const std::string near = nearest_key(one.key, which);
  const std::string suggestion = near.empty() ? "Remove it." : "Did you mean " + near + "?";
  if (const std::string others = other_versions(one.key, which); !others.empty()) {
    return say("is a key of " + others + ", not of " + in,
               near.empty() ? "Remove it." : suggestion + " Otherwise remove it.");
  }
  return say("is no key of " + in, suggestion);
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

void check_keys(const properties& all, kcl_version which, std::vector<diagnostic>& to) {
  for (const property& one : all) {
    if (find_row(one.key, which) == nullptr && !is_client_key(one.key, which)) {
      to.push_back(unknown(one, which));
    }
  }
}

void check_duplicates(const properties& all, kcl_version which, std::vector<diagnostic>& to) {
  for (auto one = all.begin(); one != all.end(); ++one) {
    const std::string key = canonical_key(one->key, which);
    const auto next = std::find_if(one + 1, all.end(), [&](const property& later) {
      return canonical_key(later.key, which) == key;
    });
    if (next == all.end()) continue;
    if (next->key == one->key) {
      to.push_back(diagnostic_at(
          *one, severity::warning, one->key + " is there again (" + place_of(*next) + ")",
          "The last one counts; this one is dead text.", "Remove one of them."));
    } else {
      to.push_back(diagnostic_at(
          *one, severity::error,
          one->key + " is there again as " + next->key + " (" + place_of(*next) + ")",
          "Both set the same field, in an order that nobody can tell.", "Remove one of them."));
    }
  }
  for (const rival& pair : rivals) {
    const property* const one = effective(all, pair.one, which);
    const property* const other = effective(all, pair.other, which);
    if (one == nullptr || other == nullptr || find_row(other->key, which) == nullptr) continue;
    to.push_back(diagnostic_at(
        *one, severity::error,
        one->key + " stands beside " + other->key + " (" + place_of(*other) + ")",
        "Both set the same field, in an order that nobody can tell.", "Remove one of them."));
  }
}

}  // namespace kclxx::tool

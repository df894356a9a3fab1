// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/property_table.hpp"

#include <algorithm>
#include <array>

#include "tool/daemon/spelling.hpp"

namespace kclxx::tool {

namespace {

using enum value_type;

constexpr property_row rows[] = {
#define KEY(name, kcl1, kcl2, kcl3, default_value) {name, kcl1, kcl2, kcl3, default_value},
#define HINT(name, advice)
#include "tool/daemon/property_table.inc"
#undef KEY
#undef HINT
};

constexpr property_hint hints[] = {
#define KEY(name, kcl1, kcl2, kcl3, default_value)
#define HINT(name, advice) {name, advice},
#include "tool/daemon/property_table.inc"
#undef KEY
#undef HINT
};

constexpr std::array<std::string_view, 3> clients{"kinesisClient.", "dynamoDbClient.",
                                                  "cloudWatchClient."};
// 1.x asks for these by name; the others by their method, which is named after the key.
constexpr std::array<std::string_view, 4> exact_in_1{"applicationName", "streamName", "workerId",
                                                     "executableName"};
constexpr std::string_view credentials = "AwsCredentialsProvider";

}  // namespace

std::span<const property_row> property_table() { return rows; }
std::span<const property_hint> property_hints() { return hints; }

std::string canonical_key(std::string_view key, kcl_version kcl) {
  std::string canonical(key);
  if (kcl == kcl_version::kcl3 && key.size() >= credentials.size() &&
      lower(key.substr(0, credentials.size())) == lower(credentials)) {
    canonical.replace(0, credentials.size(), credentials);
  }
  if (kcl == kcl_version::kcl1 && !key.empty() && !key.starts_with("AWS")) {
    canonical.front() = lower(canonical.front());
    if (std::count(exact_in_1.begin(), exact_in_1.end(), canonical) > 0) return std::string(key);
  }
  return canonical;
}

const property_row* find_row(std::string_view key, kcl_version kcl) {
  const std::string canonical = canonical_key(key, kcl);
  const auto* const found =
      std::find_if(std::begin(rows), std::end(rows),
                   [&](const property_row& row) { return row.key == canonical; });
  return found == std::end(rows) || found->type(kcl) == none ? nullptr : found;
}

bool is_known(std::string_view key, kcl_version kcl) {
  if (find_row(key, kcl) != nullptr) return true;
  return kcl != kcl_version::kcl1 &&
         std::any_of(clients.begin(), clients.end(), [key](std::string_view client) {
           return key.starts_with(client) && key.size() > client.size();
         });
}

}  // namespace kclxx::tool

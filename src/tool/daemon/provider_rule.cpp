// SPDX-License-Identifier: Apache-2.0
// Credentials providers: a list, separated by commas, of NAME|ARGUMENT|... The daemon looks for
// NAME in the AWS SDK's packages and as it is. The test e2e.providers_* compares with its decoder.
#include <algorithm>
#include <string>
#include <vector>

#include "tool/daemon/spelling.hpp"
#include "tool/daemon/value_rules.hpp"

namespace kclxx::tool {

namespace {

struct known_provider {
  std::string_view name;
  bool kcl1;
  bool kcl2;
  bool kcl3;
  std::string_view counterpart = "";  ///< what the other AWS SDK calls it

  [[nodiscard]] bool is_in(kcl_version kcl) const {
    return kcl == kcl_version::kcl1 ? kcl1 : kcl == kcl_version::kcl2 ? kcl2 : kcl3;
  }
};

constexpr known_provider providers[] = {
    {"DefaultAWSCredentialsProviderChain", true, true, false, "DefaultCredentialsProvider"},
    {"DefaultCredentialsProvider", false, false, true, "DefaultAWSCredentialsProviderChain"},
    {"EnvironmentVariableCredentialsProvider", true, true, true},
    {"SystemPropertiesCredentialsProvider", true, true, false, "SystemPropertyCredentialsProvider"},
    {"SystemPropertyCredentialsProvider", false, false, true,
     "SystemPropertiesCredentialsProvider"},
    {"profile.ProfileCredentialsProvider", true, true, false, "ProfileCredentialsProvider"},
    {"ProfileCredentialsProvider", false, false, true, "profile.ProfileCredentialsProvider"},
    {"InstanceProfileCredentialsProvider", true, true, true},
    {"ContainerCredentialsProvider", true, true, true},
    {"EC2ContainerCredentialsProviderWrapper", true, true, false, "ContainerCredentialsProvider"},
    {"WebIdentityTokenCredentialsProvider", true, true, false,
     "WebIdentityTokenFileCredentialsProvider"},
    {"WebIdentityTokenFileCredentialsProvider", false, false, true,
     "WebIdentityTokenCredentialsProvider"},
    {"AnonymousCredentialsProvider", false, false, true},
    {"PropertiesFileCredentialsProvider", true, true, false},
    {"ClasspathPropertiesFileCredentialsProvider", true, true, false},
    {"STSAssumeRoleSessionCredentialsProvider", false, true, false,
     "StsAssumeRoleCredentialsProvider"},
    {"KclSTSAssumeRoleSessionCredentialsProvider", false, true, false,
     "StsAssumeRoleCredentialsProvider"},
    {"StsAssumeRoleCredentialsProvider", false, false, true,
     "STSAssumeRoleSessionCredentialsProvider"},
    {"KclStsAssumeRoleCredentialsProvider", false, false, true,
     "STSAssumeRoleSessionCredentialsProvider"},
};

const known_provider* find_provider(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(providers), std::end(providers),
                   [&](const known_provider& one) { return one.name == name; });
  return found == std::end(providers) ? nullptr : found;
}

/// The name in this version of a provider of another one, or one that is spelt nearly so.
std::string suggestion(std::string_view name, kcl_version kcl) {
  const known_provider* const other = find_provider(name);
  const known_provider* const counterpart =
      other == nullptr ? nullptr : find_provider(other->counterpart);
  if (counterpart != nullptr && counterpart->is_in(kcl)) return std::string(counterpart->name);
  std::vector<std::string_view> names;
  for (const known_provider& one : providers) {
    if (one.is_in(kcl)) names.push_back(one.name);
  }
  return nearest(name, names);
}

std::optional<value_problem> check_name(const value_context& setting, std::string_view name) {
  const known_provider* const known = find_provider(name);
  if (known != nullptr && known->is_in(setting.which)) return std::nullopt;
  // With its package it may be a class of the user's; `profile` is a package of the AWS SDK 1.
  const bool has_package =
      name.find('.') != std::string_view::npos && !name.starts_with("profile.");
  if (known == nullptr && has_package) return std::nullopt;
  const std::string better = suggestion(name, setting.which);
  return value_problem{
      "names " + (name.empty() ? "an empty provider" : std::string(name)) + ", which " +
          std::string(name_of(setting.which)) + " does not have",
      "The daemon ignores the name, and does not start when no other provider is left.",
      better.empty() ? "Name a provider of the AWS SDK, or a class with its package."
                     : "Write " + better + "."};
}

}  // namespace

std::optional<value_problem> check_provider(const value_context& setting) {
  if (trimmed(setting.value).empty()) {
    return value_problem{"is empty", "The daemon gets no credentials.",
                         "Name a credentials provider."};
  }
  for (std::string_view rest = setting.value;;) {
    const auto comma = rest.find(',');
    const std::string_view one = trimmed(rest.substr(0, comma));
    if (auto problem = check_name(setting, trimmed(one.substr(0, one.find('|'))))) return problem;
    if (comma == std::string_view::npos) return std::nullopt;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace kclxx::tool

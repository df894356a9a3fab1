// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tool/daemon/java_options.hpp"

namespace kclxx::tool {

namespace fs = std::filesystem;

namespace {

/// "max", and the -1 of version 1, are no number.
std::optional<std::uint64_t> number_in(const std::string& word) {
  std::uint64_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

/// The first words of a file.
std::pair<std::string, std::string> words_of(const fs::path& file) {
  std::ifstream in(file);
  std::string first;
  std::string second;
  in >> first >> second;
  return {first, second};
}

void limit_memory(usable_machine& share, const std::string& bytes) {
  // An early version 1 has a huge number for no limit.
  if (const auto limit = number_in(bytes)) share.memory = std::min(share.memory, *limit);
}

void limit_cpus(usable_machine& share, const std::string& quota, const std::string& period) {
  const auto time = number_in(quota);
  const auto whole = number_in(period);
  if (!time || !whole || *whole == 0) return;
  const std::uint64_t cpus = std::max<std::uint64_t>((*time + *whole - 1) / *whole, 1);
  share.cpus = static_cast<unsigned>(std::min<std::uint64_t>(share.cpus, cpus));
}

/// The folder of a group and those above it. A container may see its own group as the uppermost,
/// though the path is still the machine's: what is not there is passed over.
void for_each_group(const fs::path& mount, const fs::path& group,
                    const std::function<void(const fs::path&)>& look) {
  for (fs::path at = group.relative_path(); !at.empty(); at = at.parent_path()) look(mount / at);
  look(mount);
}

bool has_controller(const std::string& list, const std::string& wanted) {
  return ("," + list + ",").find("," + wanted + ",") != std::string::npos;
}

}  // namespace

usable_machine within_cgroups(usable_machine whole, const fs::path& root) {
  usable_machine share = whole;
  const fs::path mounts = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // NUMBER:CONTROLLERS:PATH
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      for_each_group(mounts, group, [&](const fs::path& folder) {
        limit_memory(share, words_of(folder / "memory.max").first);
        const auto [quota, period] = words_of(folder / "cpu.max");
        limit_cpus(share, quota, period);
      });
    }
    if (has_controller(controllers, "memory")) {
      for_each_group(mounts / "memory", group, [&](const fs::path& folder) {
        limit_memory(share, words_of(folder / "memory.limit_in_bytes").first);
      });
    }
    if (has_controller(controllers, "cpu")) {
      for_each_group(mounts / "cpu", group, [&](const fs::path& folder) {
        limit_cpus(share, words_of(folder / "cpu.cfs_quota_us").first,
                   words_of(folder / "cpu.cfs_period_us").first);
      });
    }
  }
  return share;
}

}  // namespace kclxx::tool

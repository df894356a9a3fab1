// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "tool/daemon/start_guard.hpp"

namespace kclxx::tool {

namespace {

/// What was thrown, without the place; blank when the line has nothing of it.
std::string cause_in(std::string_view line) {
  constexpr std::string_view begin = " java.lang.RuntimeException: ";
  const auto at = line.find(begin);
  if (at == std::string_view::npos) return "";
  line.remove_prefix(at + begin.size());
  return ": " + std::string(line.substr(0, line.find(" at ")));
}

}  // namespace

std::optional<start_failure> explain(std::string_view line) {
  const bool is_end = line.starts_with("Unable to initialize after");
  if (line.find("leaseCounter is marked non-null but is null") != std::string_view::npos) {
    return start_failure{
        "the lease table has rows of KCL 3, which KCL 2 cannot read, so this worker takes no "
        "shards: use --kcl 3, or remove these rows (docs/kcl-versions.md#back-to-kcl-2)",
        is_end};
  }
  if (!is_end) return std::nullopt;
  return start_failure{"the worker could not be initialized" + cause_in(line), true};
}

}  // namespace kclxx::tool

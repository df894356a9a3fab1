// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kclxx::tool {

/// The variable with the file to which properties/logback.xml writes the failures of a worker.
constexpr const char* failures_variable = "KCLXX_FAILURES";

struct start_failure {
  std::string what;     ///< with the remedy, in one line
  bool is_end = false;  ///< the worker is about to leave, with status 0

  bool operator==(const start_failure&) const = default;
};

/// What one of the failures that properties/logback.xml hands to the guard means. Nothing: the
/// daemon's own words are enough.
std::optional<start_failure> explain(std::string_view line);

/// A worker that the KCL cannot initialize leaves with status 0, as if all were well. This starts a
/// process beside the one that is to become Java, and sets failures_variable: it explains failures
/// in the log, and kills Java before that leaves. It ends with Java.
/// Errors: exit status 5.
void start_guard();

}  // namespace kclxx::tool

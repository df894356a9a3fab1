// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kclxx::tool {

/// The variable with the file to which properties/logback.xml writes the failures of a worker.
constexpr const char* failures_variable = "KCLXX_FAILURES";

/// A worker that the KCL cannot initialize leaves with status 0, as if all were well. This starts a
/// process beside the one that is to become Java, and sets failures_variable: it explains failures
/// in the log, and kills Java before that leaves. It ends with Java.
/// Errors: exit status 5.
void start_guard();

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kclxx::test {

/// The includes of a source file that go against docs/architecture.md, each as
/// "path: <header>: why not". `path` is relative to the project, for instance
/// "src/kclxx/io/signals.cpp".
std::vector<std::string> include_violations(std::string_view path, std::string_view text);

/// How the paths begin that have rules of their own.
std::vector<std::string_view> layer_paths();

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "tool/embedded.hpp"

namespace kclxx::tool {

/// The KCL's major versions, each with its own MultiLangDaemon.
enum class kcl_version { kcl1 = 1, kcl2 = 2, kcl3 = 3 };

/// "KCL 3.x".
std::string_view name_of(kcl_version which);

/// The class whose main is the daemon.
std::string_view main_class(kcl_version which);

/// How the name of the jar that has this class begins.
std::string_view main_jar(kcl_version which);

/// The Maven project with the daemon's jars.
const embedded::project& jars_of(kcl_version which);

/// The logging configuration that fits: each line of a child's stderr appears once, and not as an
/// error. For KCL 1.x a java.util.logging file, else one for logback.
std::string_view logging_of(kcl_version which);

}  // namespace kclxx::tool

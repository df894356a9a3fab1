// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "tool/embedded.hpp"

namespace kclxx::tool {

/// The KCL's major versions, each with its own MultiLangDaemon.
enum class kcl_version { kcl1 = 1, kcl2 = 2, kcl3 = 3 };

/// The versions of the two parts of a daemon: the KCL's core, and the daemon itself, which are
/// published one by one. With KCL 1.x they are one.
struct kcl_parts {
  std::string_view core;
  std::string_view daemon;
};

/// What is fetched and tested with kclxx.
kcl_parts tested_parts(kcl_version kcl);

/// The KCL that a command is for.
struct kcl_choice {
  kcl_version which = kcl_version::kcl3;
  std::string core;  ///< empty: the tested one

  /// "3", or a version of the core like "3.2.0". Nothing: it is neither.
  static std::optional<kcl_choice> parse(std::string_view text);

  [[nodiscard]] std::string_view core_version() const;
  /// As it is written on a command line.
  [[nodiscard]] std::string text() const;
};

/// "3.5.1" < "3.10.0".
std::strong_ordering compare_versions(std::string_view one, std::string_view other);

/// "KCL 3.x".
std::string_view name_of(kcl_version kcl);

/// The class whose main is the daemon.
std::string_view main_class(kcl_version kcl);

/// How the name of the jar that has this class begins.
std::string_view main_jar(kcl_version kcl);

/// The Maven project with the daemon's jars.
const embedded::project& jars_of(kcl_version kcl);

/// The logging configuration that fits: each line of a child's stderr appears once, and not as an
/// error. For KCL 1.x a java.util.logging file, else one for logback.
std::string_view logging_of(kcl_version kcl);

}  // namespace kclxx::tool

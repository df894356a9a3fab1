// SPDX-License-Identifier: Apache-2.0
// What is wrong with a properties file, and which defaults are costly.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tool/daemon/kcl_version.hpp"
#include "tool/daemon/properties.hpp"
#include "tool/process/program_search.hpp"

namespace kclxx::tool {

enum class severity {
  warning,  ///< the daemon does what the file asks for, and that has a price
  error,    ///< the daemon does something else than the file asks for, or does not start
};

struct diagnostic {
  severity level = severity::error;
  std::size_t line = 0;  ///< 0: it belongs to no line
  std::string origin;    ///< property::origin, when it has one
  std::string what;      ///< begins with the key
  std::string why;       ///< why it matters: sentences
  std::string fix;       ///< what to write or do: sentences

  bool operator==(const diagnostic&) const = default;
};

/// What the daemon would find under the first word of executableName: a path, or a name to be
/// looked up in PATH.
using executable_look = std::function<executable_state(const std::string& program)>;

/// For a program that is elsewhere: `missing` for a name that only a shell would understand.
executable_state look_at_name(const std::string& program);

/// What the daemon finds where it runs, besides the file.
struct machine {
  executable_look look;
  bool has_region = false;  ///< AWS_REGION is set
  std::string core{};       ///< the version of the KCL's core; empty: the tested one
};

/// All diagnostics, in the order of the file; those without a line come last.
std::vector<diagnostic> check(const properties& all, kcl_version kcl, const machine& system);

/// Adds what is known to be wrong with a version of the KCL.
void check_kcl(const kcl_choice& kcl, std::vector<diagnostic>& problems);

/// The parts of check; each adds what it finds.
void check_keys(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems);
void check_duplicates(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems);
void check_values(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems);
void check_required(const properties& all, kcl_version kcl, std::vector<diagnostic>& problems);
void check_defaults(const properties& all, kcl_version kcl, const machine& system,
                    std::vector<diagnostic>& problems);
void check_executable(const properties& all, const executable_look& look,
                      std::vector<diagnostic>& problems);

/// The property that this version takes for `key`, in whatever spelling it accepts; the last
/// one. nullptr: none.
const property* effective(const properties& all, std::string_view key, kcl_version kcl);

diagnostic diagnostic_at(const property& place, severity level, std::string problem,
                         std::string reason, std::string fix);

}  // namespace kclxx::tool

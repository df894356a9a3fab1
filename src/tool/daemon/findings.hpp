// SPDX-License-Identifier: Apache-2.0
// What is wrong with a properties file, and what is merely dear to have left at its default.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tool/daemon/generation.hpp"
#include "tool/daemon/properties.hpp"

namespace kclxx::launcher {

enum class severity {
  warning,  ///< the daemon does what the file says, and that has a price
  error,    ///< the daemon does something else than the file says, or does not start
};

struct finding {
  severity level = severity::error;
  std::size_t line = 0;  ///< 0: it belongs to no line
  std::string origin;    ///< property::origin, when it has one
  std::string what;      ///< begins with the key
  std::string why;       ///< why it matters: sentences
  std::string fix;       ///< what to write or do: sentences

  bool operator==(const finding&) const = default;
};

enum class executable_state { fine, missing, not_executable, directory };

/// What the daemon would find under the first word of executableName: a path, or a name to be
/// looked up in PATH.
using executable_look = std::function<executable_state(const std::string& program)>;

/// All findings, in the order of the file; those without a line come last.
std::vector<finding> check(const properties& all, generation which, const executable_look& look);

/// The parts of check; each adds what it finds.
void check_keys(const properties& all, generation which, std::vector<finding>& to);
void check_duplicates(const properties& all, generation which, std::vector<finding>& to);
void check_values(const properties& all, generation which, std::vector<finding>& to);
void check_required(const properties& all, generation which, std::vector<finding>& to);
void check_traps(const properties& all, generation which, std::vector<finding>& to);
void check_executable(const properties& all, const executable_look& look, std::vector<finding>& to);

/// The property that this generation takes for `key`, in whatever spelling it accepts; the last
/// one. nullptr: none.
const property* effective(const properties& all, std::string_view key, generation which);

finding found_at(const property& place, severity level, std::string what, std::string why,
                 std::string fix);

}  // namespace kclxx::launcher

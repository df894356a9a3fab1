// SPDX-License-Identifier: Apache-2.0
// What is wrong with a properties file, and what has a price.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "host/daemon/properties.hpp"
#include "tool/process/program.hpp"

namespace kclxx::host {

enum class severity {
  warning,  ///< the daemon starts, and loses, hangs, costs or ignores something
  error,    ///< the daemon does not start, or starts no child
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

/// What the daemon's own reader says of the file: a line that src/host/java/PropertiesReader.java
/// prints.
struct reading {
  std::string kind;
  std::string key;
  std::string text;
};
std::vector<reading> parse_readings(std::string_view lines);

/// What the daemon would find under the first word of executableName: a path, or a name to be
/// looked up in PATH.
using executable_look = std::function<tool::executable_state(const std::string& program)>;

/// The look at a program of another machine: `missing` for a name that only a shell understands.
tool::executable_state look_at_name(const std::string& program);

/// What the daemon finds where it runs, besides the file.
struct circumstances {
  executable_look look;
  bool has_region = false;           ///< AWS_REGION is set
  kcl_choice kcl{};                  ///< which daemon it is
  std::uint64_t heap_mib = 0;        ///< the most that Java takes; 0: not known
  std::vector<reading> readings{};   ///< empty: the reader was not there, so no value was judged
  bool has_stock_writer = true;      ///< the daemon's writer holds a batch several times over
  std::uint64_t heap_of_others = 0;  ///< MiB that other streams of the same process need
};

/// The properties of one stream, and what messages call their file.
struct named_properties {
  std::string file;
  properties content;
};

/// MiB of Java's heap for the shards of a stream in a backlog, beside what the daemon itself needs.
std::uint64_t heap_of_shards(const properties& file, const circumstances& where);

/// Why the last of these files cannot be in one daemon with those before, and cannot be of two
/// daemons either.
std::vector<diagnostic> find_conflicts(const std::vector<named_properties>& streams,
                                       kcl_version kcl);

/// All diagnostics, in the order of the file; those without a line come last.
std::vector<diagnostic> check(const properties& entries, const circumstances& where);

}  // namespace kclxx::host

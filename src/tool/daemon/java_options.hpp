// SPDX-License-Identifier: Apache-2.0
// The options of Java that `daemon run` chooses. What they save, and for whom, was measured:
// docs/performance.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kclxx::tool {

/// What a process may use of its machine.
struct usable_machine {
  unsigned cpus = 1;
  std::uint64_t memory = 0;  ///< bytes
};

/// What the control groups of this process, of version 2 or 1, leave of a machine. `root` is "/",
/// with /proc and /sys below it. What cannot be read limits nothing.
usable_machine within_cgroups(usable_machine whole, const std::filesystem::path& root);

struct java_choice {
  usable_machine machine;
  /// For shards that deliver what they can, all the time: Java may use memory and compile more.
  bool is_busy = false;
  /// The file with the class archive; empty: there is none.
  std::string class_archive;
};

/// Collector, heap, young generation, compiler and class archive. Whatever an option in `given`,
/// the user's, decides is left out. All of them are known to Java 8 and newer, but for the archive.
std::vector<std::string> java_options(const java_choice& choice,
                                      const std::vector<std::string>& given);

/// One of the options decides which class archive there is.
bool decides_class_archive(const std::vector<std::string>& given);

}  // namespace kclxx::tool

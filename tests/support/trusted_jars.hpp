// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/tool.hpp"

namespace kclxx::test {

/// Puts a sha256sum into the sandbox that prints the expected checksums, changed by `edit`: a
/// test's Maven brings no real jars. The pom.xml in its working directory names the project it
/// is.
inline void expect_jars(const sandbox& box, const std::string& edit = "cat",
                        const std::string& first = "") {
  const std::string source = KCLXX_SOURCE_DIR "/src/tool/";
  // Of npm's packages one checksum is made, from stdin.
  box.program("bin/sha256sum", first + "[ $# != 0 ] || { cat >/dev/null; exec sed 's/$/  -/' " +
                                   source + "local/packages.sha256; }\n" + "for pom in " + source +
                                   "daemon/jars/*/pom.xml " + source +
                                   "local/dynamodb/pom.xml; do\n"
                                   "  cmp -s pom.xml $pom && exec " +
                                   edit + " ${pom%pom.xml}SHA256SUMS\ndone\n" +
                                   "exec /usr/bin/sha256sum \"$@\"\n");
}

}  // namespace kclxx::test

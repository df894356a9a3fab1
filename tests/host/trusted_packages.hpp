// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "support/tool.hpp"

namespace kclxx::test {

/// What a Maven of the test brings in place of the jars of the project in $to/pom.xml, in sh: files
/// of the expected names with the text "jar".
inline const std::string bring_jars =
    "for a; do case $a in -DoutputDirectory=*) to=${a#*=};; esac; done\n"
    "from=\n"
    "grep -q '<core.version>2.7.2<' $to/pom.xml && from=daemon/jars/kcl2\n"
    "grep -q '<core.version>3.5.1<' $to/pom.xml && from=daemon/jars/kcl3\n"
    "grep -q DynamoDBLocal $to/pom.xml && from=local/dynamodb\n"
    "[ -z $from ] || while read -r hash name; do echo jar > \"$to/$name\"; done < " KCLXX_SOURCE_DIR
    "/src/host/$from/SHA256SUMS\n";

/// Puts a sha256sum into the sandbox that takes a file with the text "jar" for the published one of
/// its name, since a test brings no real jars. Of all other files it tells the truth.
inline void trust_packages(const sandbox& box) {
  box.program("bin/sha256sum",
              "shift\n"
              "sums=$(cat " KCLXX_SOURCE_DIR "/src/host/daemon/jars/*/SHA256SUMS " KCLXX_SOURCE_DIR
              "/src/host/local/dynamodb/SHA256SUMS " KCLXX_SOURCE_DIR
              "/src/host/local/program/SHA256SUMS)\n"
              "echo \"$sums\" > $HOME/sums\n"
              "for file; do echo \"$file\"; done | awk '\n"
              "  FILENAME != \"-\" { name = substr($0, 67); if (!(name in sum)) sum[name] = $1; "
              "next }\n"
              "  { name = $0; sub(/.*\\//, \"\", name); line = \"\"; getline line < $0\n"
              "    if (line == \"jar\" && name in sum) print sum[name] \"  \" $0\n"
              "    else { fflush(); system(\"/usr/bin/sha256sum -- \\047\" $0 \"\\047\") } }\n"
              "' $HOME/sums -\n");
}

}  // namespace kclxx::test

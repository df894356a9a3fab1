// SPDX-License-Identifier: Apache-2.0
// A test, and what it starts, knows nothing of this machine's Java, packages and local Kinesis.
#include <cstdlib>
#include <initializer_list>

namespace {

[[maybe_unused]] const bool is_unset = [] {
  for (const char* name : {"JAVA_HOME", "KCLXX_LOCAL_DIRECTORY", "MAVEN_ARGS", "MAVEN_OPTS"}) {
    ::unsetenv(name);
  }
  return true;
}();

}  // namespace

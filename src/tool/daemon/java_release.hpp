// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::tool {

/// Which Java a program is.
struct java_release {
  int major = 0;     ///< 8, 11, 17 ...; 0: not known
  std::string text;  ///< differs from that of any other build
};

/// From the file `release` of a Java, or from what `java -version` prints.
java_release parse_java_release(std::string text);

/// Reads the file `release` beside the program's folder. Where there is none, as in some packages
/// of Java 8, it runs `java -version`.
java_release release_of(const std::string& java);

}  // namespace kclxx::tool

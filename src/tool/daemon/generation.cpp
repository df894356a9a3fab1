// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/generation.hpp"

#include "tool/embedded.hpp"

namespace kclxx::launcher {

std::string_view name_of(generation which) {
  return which == generation::kcl1 ? "KCL 1.x" : which == generation::kcl2 ? "KCL 2.x" : "KCL 3.x";
}

std::string_view main_class(generation which) {
  return which == generation::kcl1 ? "com.amazonaws.services.kinesis.multilang.MultiLangDaemon"
                                   : "software.amazon.kinesis.multilang.MultiLangDaemon";
}

std::string_view main_jar(generation which) {
  return which == generation::kcl1 ? "amazon-kinesis-client-1."
                                   : "amazon-kinesis-client-multilang-";
}

jar_set jars_of(generation which) {
  const auto& project = embedded::projects[static_cast<std::size_t>(which) - 1];
  return {project.folder, project.pom};
}

std::string_view logging_of(generation which) {
  return which == generation::kcl1 ? embedded::java_util_logging : embedded::logback;
}

}  // namespace kclxx::launcher

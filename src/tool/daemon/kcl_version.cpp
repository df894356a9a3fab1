// SPDX-License-Identifier: Apache-2.0
#include "tool/daemon/kcl_version.hpp"

namespace kclxx::tool {

std::string_view name_of(kcl_version which) {
  return which == kcl_version::kcl1   ? "KCL 1.x"
         : which == kcl_version::kcl2 ? "KCL 2.x"
                                      : "KCL 3.x";
}

std::string_view main_class(kcl_version which) {
  return which == kcl_version::kcl1 ? "com.amazonaws.services.kinesis.multilang.MultiLangDaemon"
                                    : "software.amazon.kinesis.multilang.MultiLangDaemon";
}

std::string_view main_jar(kcl_version which) {
  return which == kcl_version::kcl1 ? "amazon-kinesis-client-1."
                                    : "amazon-kinesis-client-multilang-";
}

const embedded::project& jars_of(kcl_version which) {
  return embedded::projects[static_cast<std::size_t>(which) - 1];
}

std::string_view logging_of(kcl_version which) {
  return which == kcl_version::kcl1 ? embedded::java_util_logging : embedded::logback;
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/temporary_directory.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace kclxx::tool {

namespace fs = std::filesystem;

temporary_directory::temporary_directory(std::string_view use) {
  std::string name =
      (fs::temp_directory_path() / ("kclxx-" + std::string(use) + "-XXXXXX")).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), name + " cannot be made");
  }
  path_ = name;
}

temporary_directory::~temporary_directory() {
  std::error_code ignored;
  if (!is_kept_) fs::remove_all(path_, ignored);
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/write_file.hpp"

#include <fstream>

#include "tool/command_error.hpp"

namespace kclxx::tool {

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream out(path, std::ios::binary);
  out << text << std::flush;
  if (!out) cannot_set_up(path, "written");
}

}  // namespace kclxx::tool

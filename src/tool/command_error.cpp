// SPDX-License-Identifier: Apache-2.0
#include "tool/command_error.hpp"

#include <cerrno>
#include <cstring>

namespace kclxx::tool {

void cannot_set_up(const std::string& message) {
  throw command_error(exit_status::setup_failed, message);
}

void cannot_set_up(const std::filesystem::path& path, const std::string& done) {
  cannot_set_up(path.string() + " cannot be " + done + ": " + std::strerror(errno));
}

}  // namespace kclxx::tool

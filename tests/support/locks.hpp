// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <sys/types.h>

#include "support/text.hpp"

namespace kclxx::test {

/// Whether somebody waits for a lock (flock) of this file.
inline bool is_lock_awaited(ino_t inode) {
  std::istringstream locks(read_file("/proc/locks"));
  const std::string file = ":" + std::to_string(inode) + " ";
  for (std::string line; std::getline(locks, line);) {
    if (line.find("->") != std::string::npos && line.find(file) != std::string::npos) return true;
  }
  return false;
}

}  // namespace kclxx::test

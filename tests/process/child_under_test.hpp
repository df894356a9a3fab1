// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "support/scripted_daemon.hpp"

namespace kclxx::test {

/// process/child.cpp, which does what a record's text says.
inline const std::string child = KCLXX_TEST_CHILD;

inline void start(scripted_daemon& daemon) {
  daemon.initialize();
  daemon.expect_status("initialize");
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "support/scripted_daemon.hpp"

namespace kclxx::test {

/// children/test_child.cpp, which does what a record's text names.
inline const std::string child = KCLXX_TEST_CHILD;

inline void start(scripted_daemon& daemon) {
  daemon.initialize();
  daemon.expect_status("initialize");
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

inline int count(const std::string& text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace kclxx::test

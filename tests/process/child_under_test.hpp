// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "support/scripted_daemon.hpp"
#include "support/text.hpp"  // IWYU pragma: export

namespace kclxx::test {

/// children/test_child.cpp, which does what a record's text names.
inline const std::string child = KCLXX_TEST_CHILD;

inline void start(scripted_daemon& daemon) {
  daemon.initialize();
  daemon.expect_status("initialize");
}

/// A child with these flags that was initialized.
class started_child : public scripted_daemon {
 public:
  explicit started_child(std::vector<std::string> flags = {}) : scripted_daemon(command(flags)) {
    start(*this);
  }

 private:
  static std::vector<std::string> command(std::vector<std::string>& flags) {
    flags.insert(flags.begin(), child);
    return std::move(flags);
  }
};

}  // namespace kclxx::test

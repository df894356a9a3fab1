// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kclxx::test {

/// Empty when each tag is closed in its order, else what is wrong.
inline std::string unbalanced(const std::string& page) {
  std::vector<std::string> open;
  std::size_t at = page.find(page.starts_with("<!DOCTYPE") ? "<html" : "<");
  for (at = page.find('<', at); at != std::string::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string::npos) return "a tag without its end";
    const std::string tag = page.substr(at + 1, end - at - 1);
    if (tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(tag.substr(0, tag.find(' ')));
    } else {
      if (open.empty() || open.back() != tag.substr(1)) return "<" + tag + "> closes nothing";
      open.pop_back();
    }
  }
  return open.empty() ? "" : open.back() + " is open";
}

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/line_source.hpp"

namespace kclxx::transcript {

namespace {

// Small enough to be searched while still in the cache, large enough for few system calls.
constexpr std::size_t chunk = std::size_t{256} << 10;

}  // namespace

line_source::result line_source::next(std::string_view& line) {
  while (!lines_.next(line)) {
    line = lines_.rest();
    if (line.size() > limit_) return result::too_long;
    const std::size_t size = source_.read(lines_.prepare(chunk), chunk);
    lines_.commit(size);
    if (size > 0) continue;
    line = lines_.take_rest();
    return line.empty() ? result::end : result::cut_off;
  }
  return line.size() > limit_ ? result::too_long : result::line;
}

}  // namespace kclxx::transcript

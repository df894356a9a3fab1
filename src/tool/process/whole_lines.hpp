// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <unistd.h>

#include "io/line_writer.hpp"

namespace kclxx::tool {

/// Passes on a child's stderr, with no line cut by another child's.
class whole_lines {
 public:
  ~whole_lines() { write(begun_.size()); }
  void take(std::string_view text) {
    begun_.append(text);
    write(begun_.size() < longest ? begun_.rfind('\n') + 1 : begun_.size());
  }

 private:
  static constexpr std::size_t longest = std::size_t{1} << 20;

  void write(std::size_t size) {
    const std::error_code ignored = io::write_all(STDERR_FILENO, {begun_.data(), size});
    static_cast<void>(ignored);
    begun_.erase(0, size);
  }

  std::string begun_;
};

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kclxx::tool::health {

/// The file is not one that kclxx has written; what() says what is wrong with it.
class garbled_file : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a shard's text file says about its session.
struct shard_figures {
  std::string shard;
  std::uint64_t process = 0;
  /// When the oldest call that still runs began, since 1970; 0: none does.
  std::chrono::duration<double> oldest_call{0};
};

/// Errors: garbled_file.
[[nodiscard]] shard_figures parse_figures(std::string_view text);

}  // namespace kclxx::tool::health

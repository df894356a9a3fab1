// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kclxx {

enum class log_level { info, warning, error };

/// One message of the library.
struct log_entry {
  log_level level;
  std::string shard_id;  ///< empty before initialize
  std::string text;      ///< one line, without a newline; control characters are escaped as in C
  bool operator==(const log_entry&) const = default;
};

}  // namespace kclxx

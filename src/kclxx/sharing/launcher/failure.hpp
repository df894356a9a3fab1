// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstdio>

namespace kclxx::sharing {

/// Why something is not shared: one line for people.
struct failure {
  char text[512] = {};
  /// printf; keeps the first.
  [[gnu::format(printf, 2, 3)]] void set(const char* format, ...) {
    if (is_set()) return;
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
  }
  [[nodiscard]] bool is_set() const { return text[0] != '\0'; }
};

}  // namespace kclxx::sharing

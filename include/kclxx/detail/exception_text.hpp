// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace kclxx::detail {

/// what() of an exception of user code, which may be null.
inline const char* text_of(const std::exception& error) noexcept {
  const char* const text = error.what();
  return text == nullptr ? "a std::exception without a text" : text;
}

}  // namespace kclxx::detail

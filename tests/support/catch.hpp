// SPDX-License-Identifier: Apache-2.0
// Catch2 3 and 2 alike.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace kclxx::test {

/// The matcher has another name in each.
inline auto Contains(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Contains(text);
#endif
}

}  // namespace kclxx::test

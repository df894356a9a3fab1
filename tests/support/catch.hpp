// SPDX-License-Identifier: Apache-2.0
// Catch2, version 3 or 2.
#pragma once

#include <string>

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif

namespace kclxx::test {

/// The matcher for a part of a text, which the two versions call differently.
inline auto Contains(const std::string& text) {
#if __has_include(<catch2/catch_all.hpp>)
  return Catch::Matchers::ContainsSubstring(text);
#else
  return Catch::Contains(text);
#endif
}

}  // namespace kclxx::test

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <version>

/// Marks what a shared kclxx library exports; everything else in it is hidden.
#if defined(__GNUC__)
#define KCLXX_EXPORT __attribute__((visibility("default")))
#else
#define KCLXX_EXPORT
#endif

// What decides how the standard library's types lie in memory. A program and the library that were
// compiled otherwise do not link: the program refers to a symbol that the library does not define,
// and its name says why.
#if defined(_GLIBCXX_DEBUG)
#define KCLXX_DETAIL_CONTAINERS needs_a_libkclxx_compiled_with_GLIBCXX_DEBUG
#else
#define KCLXX_DETAIL_CONTAINERS needs_a_libkclxx_compiled_without_GLIBCXX_DEBUG
#endif
#if defined(_LIBCPP_VERSION)
#define KCLXX_DETAIL_STRINGS needs_a_libkclxx_compiled_with_libcxx
#elif defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#define KCLXX_DETAIL_STRINGS needs_a_libkclxx_compiled_with_GLIBCXX_USE_CXX11_ABI_0
#else
#define KCLXX_DETAIL_STRINGS needs_a_libkclxx_compiled_with_GLIBCXX_USE_CXX11_ABI_1
#endif

namespace kclxx::detail {

extern KCLXX_EXPORT const char KCLXX_DETAIL_CONTAINERS;
extern KCLXX_EXPORT const char KCLXX_DETAIL_STRINGS;

#if defined(__GNUC__)
#if __has_attribute(retain)
__attribute__((used, retain))  // even if the linker removes what no code uses
#else
__attribute__((used))
#endif
static const char* const settings_of_libkclxx[] = {&KCLXX_DETAIL_CONTAINERS, &KCLXX_DETAIL_STRINGS};
#endif

}  // namespace kclxx::detail

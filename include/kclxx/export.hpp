// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

/// Marks what a shared kclxx library exports; everything else in it is hidden. A program has no use
/// for it.
#if defined(__GNUC__)
#define KCLXX_EXPORT __attribute__((visibility("default")))
#else
#define KCLXX_EXPORT
#endif

// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Marks what a shared kclxx library exports; everything else in it is hidden.
#if defined(__GNUC__)
#define KCLXX_EXPORT __attribute__((visibility("default")))
#else
#define KCLXX_EXPORT
#endif

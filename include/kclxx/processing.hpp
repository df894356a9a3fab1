// SPDX-License-Identifier: Apache-2.0
// Forms of processing with a failure policy; docs/processing.md is their guide. `each` processes
// one record at a time, `batches` a batch at once, `parallel` many records side by side.
// kclxx/asio.hpp has `parallel` for coroutines.
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <kclxx/processing/batches.hpp>         // IWYU pragma: export
#include <kclxx/processing/each.hpp>            // IWYU pragma: export
#include <kclxx/processing/failure_policy.hpp>  // IWYU pragma: export
#include <kclxx/processing/handler.hpp>         // IWYU pragma: export
#include <kclxx/processing/parallel.hpp>        // IWYU pragma: export

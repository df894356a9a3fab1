// SPDX-License-Identifier: Apache-2.0
// Everything that a record processor needs. Headers that only some programs need are not in it:
// kclxx/asio.hpp (handlers that are coroutines), kclxx/json.hpp (handlers of values that are JSON),
// kclxx/metrics_recorder.hpp (metrics in another library),
// kclxx/testing/worker.hpp (the test kit).
//
// The default contract of each function and type, unless its comment states something else:
// Errors: std::bad_alloc alone; none if it is noexcept.
// Thread safety: distinct objects are independent. Const functions of one object may be called from
// several threads at the same time.
// Blocking: no: it waits neither for the daemon, nor for a disk, nor for user code.
//
// A session is the dialogue with the daemon about one shard. `serve` runs a session, and so does
// `run`; under kclxx-share `run` runs a session for each shard. An action (initialize,
// processRecords, ...) is open from the daemon's line to the child's status line. The daemon reads
// the child's lines only while an action is open.
#pragma once

#include <kclxx/checkpointer.hpp>       // IWYU pragma: export
#include <kclxx/error.hpp>              // IWYU pragma: export
#include <kclxx/exit_status.hpp>        // IWYU pragma: export
#include <kclxx/log.hpp>                // IWYU pragma: export
#include <kclxx/observer.hpp>           // IWYU pragma: export
#include <kclxx/processing.hpp>         // IWYU pragma: export
#include <kclxx/processor_factory.hpp>  // IWYU pragma: export
#include <kclxx/record.hpp>             // IWYU pragma: export
#include <kclxx/record_batch.hpp>       // IWYU pragma: export
#include <kclxx/record_processor.hpp>   // IWYU pragma: export
#include <kclxx/run.hpp>                // IWYU pragma: export
#include <kclxx/run_options.hpp>        // IWYU pragma: export
#include <kclxx/sequence_position.hpp>  // IWYU pragma: export
#include <kclxx/shard_context.hpp>      // IWYU pragma: export
#include <kclxx/version.hpp>            // IWYU pragma: export

// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <kclxx/detail/export.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processor_factory.hpp>

namespace kclxx {

/// The processor factory of a program that processes one record at a time, in the shard's order:
///
///     return kclxx::run(kclxx::each([](const kclxx::record& event) { store(event.data()); },
///                                   {.bad_record = kclxx::bad_record::park}));
///
/// A record is complete when the handler has returned, or when the record was skipped or parked as
/// `policy` demands. Complete records are checkpointed as in checkpoint_mode::automatic, also
/// during a long batch. Records before one that failed are not processed again by this process.
/// Errors: none. With an empty function, or a policy that cannot work, the factory is not valid:
/// `run` reports it.
/// Thread safety: the handler is called on the callbacks' thread.
[[nodiscard]] KCLXX_EXPORT processor_factory each(record_handler handler,
                                                  failure_policy policy = {});

}  // namespace kclxx

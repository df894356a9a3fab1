// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/export.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processor_factory.hpp>

namespace kclxx {

/// The processor factory of a program that processes a batch at once: the handler gets all
/// records of one processRecords call; after a failure a part of them. It gets no empty batch.
///
/// The records are complete when the handler returns. If it throws batch_failure, those before the
/// exception's position are complete; the record there has failed an attempt, and a further attempt
/// begins with it. After any other exception the handler gets halves of the batch until the failing
/// record is alone. These calls with several records are no attempts, and may repeat good records.
///
/// Errors: as `each`.
/// Thread safety: as `each`.
[[nodiscard]] KCLXX_EXPORT processor_factory batches(batch_handler handler,
                                                     failure_policy policy = {});

}  // namespace kclxx

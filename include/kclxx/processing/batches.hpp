// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/export.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processor_factory.hpp>

namespace kclxx {

/// The processor factory of a program that processes a batch at once: the handler gets the records
/// of one processRecords call, never none, and after a failure a part of them.
///
/// The records are complete when the handler returns. When it throws batch_failure, those before
/// the failure's position are complete; the record there has failed one attempt, and the handler is
/// called again with it and what follows. After any other exception it is called with halves of the
/// batch, without waiting and at no attempt's cost, until the record that fails is alone. So
/// records that did not fail are processed again: the handler must allow for it.
///
/// Errors, Thread safety: as `each`.
[[nodiscard]] KCLXX_EXPORT processor_factory batches(batch_handler handler,
                                                     failure_policy policy = {});

}  // namespace kclxx

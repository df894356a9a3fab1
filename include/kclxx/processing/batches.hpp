// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kclxx/export.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processor_factory.hpp>

namespace kclxx {

/// The processor factory of a program that processes a batch at once: the handler gets all
/// records of one processRecords call, at least one; after a failure it gets some of them.
///
/// They are complete when the handler returns. When it throws batch_failure, those before its
/// position are complete; the record there has failed one attempt, and the handler is called again
/// from it on. After any other exception it is called with halves, without waiting, until the
/// record that fails is alone. This search does not count as an attempt. The handler may get good
/// records again during it.
///
/// Errors: as `each`.
/// Thread safety: as `each`.
[[nodiscard]] KCLXX_EXPORT processor_factory batches(batch_handler handler,
                                                     failure_policy policy = {});

}  // namespace kclxx

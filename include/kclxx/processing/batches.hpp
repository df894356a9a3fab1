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
/// the failure's position are complete. The record at that position has failed one attempt; the
/// handler is called again from it on. After any other exception the handler is called with
/// halves of the batch, without waiting, until the record that fails is alone. This search does not
/// count as an attempt. Records that did not fail are processed again by it: the handler must allow
/// for that.
///
/// Errors, Thread safety: as `each`.
[[nodiscard]] KCLXX_EXPORT processor_factory batches(batch_handler handler,
                                                     failure_policy policy = {});

}  // namespace kclxx

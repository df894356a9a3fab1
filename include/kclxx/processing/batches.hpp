// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <kclxx/detail/export.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processor_factory.hpp>

namespace kclxx {

/// Which records one call of a batch_handler gets. By default those of one processRecords call.
///
/// With a linger the records of several calls are gathered, in order. They are handed over when one
/// of the limits is reached or the next record would exceed it, when the oldest has waited for the
/// linger, at shutdown_requested and at shard_ended. When the lease is lost they are dropped. What
/// is gathered is not complete: no checkpoint covers it.
///
/// What is gathered is handed over before it takes more memory than 64 MiB, or than max_bytes if
/// that is larger. While the handler runs the daemon waits. So the records of one processRecords
/// call are in memory, too. docs/processing.md has what is processed again after a crash.
///
/// Errors: with a limit of 0 or a negative linger the factory of `batches` is not valid.
/// Thread safety: a value; processors copy it.
struct batch_options {
  /// The most records that a call of the handler gets, at least 1. Unset: no limit.
  std::optional<std::size_t> max_records{};
  /// The most bytes of data that a call of the handler gets, at least 1. A record that is larger is
  /// handed over alone. Unset: no limit.
  std::optional<std::uint64_t> max_bytes{};
  /// How long a record may wait for others, by the shard's clock, which is virtual in the test kit;
  /// longer while the handler runs. 0: nothing is gathered.
  std::chrono::milliseconds linger{0};
  /// order::key: with a record that a batch_failure names, the later records of its partition key
  /// in the batch come again, processed or not.
  kclxx::order order = order::none;
};

/// The processor factory of a program that processes many records at once:
///
///     return kclxx::run(kclxx::batches(handler, {}, {.max_records = 500, .linger = 2s}));
///
/// The records are complete when the handler returns. It throws a batch_failure to name those that
/// failed. After any other exception the handler gets halves of the batch until the failing record
/// is alone: good records can come again. Of these calls only those with a single record count as
/// attempts. The handler gets no empty batch.
///
/// Records that are handed over between two processRecords calls are checkpointed with the next
/// call or at the shutdown.
///
/// Errors: none. With an empty function, or a policy or options that cannot work, the factory is
/// not valid. Thread safety: as `each`.
[[nodiscard]] KCLXX_EXPORT processor_factory batches(batch_handler handler,
                                                     failure_policy policy = {},
                                                     batch_options options = {});

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <kclxx/detail/export.hpp>
#include <kclxx/processing/failure_policy.hpp>
#include <kclxx/processing/handler.hpp>
#include <kclxx/processor_factory.hpp>
#include <kclxx/record.hpp>

namespace kclxx {

namespace detail {
class taken_record;
}

/// Reports the result of one record: call complete() or fail() exactly once. A completion that is
/// destroyed without either counts as failed. Move-only; a default-constructed,
/// moved-from or reported one is empty.
///
/// Once a stop is requested, a report has no effect.
///
/// Thread safety: distinct objects may be used and destroyed from any thread, in any order.
/// Lifetime: it keeps its record alive, and may outlive the processor.
class KCLXX_EXPORT completion {
 public:
  /// An empty one.
  completion() noexcept;
  /// Takes the record of `source`, which then is empty.
  completion(completion&& source) noexcept;
  /// A record that this object held, and that was not reported, counts as failed.
  completion& operator=(completion&& source) noexcept;
  ~completion();

  /// False for an empty one.
  explicit operator bool() const noexcept { return taken_ != nullptr; }
  /// Precondition: it is not empty. The reference is valid until complete() or fail().
  [[nodiscard]] const kclxx::record& record() const noexcept;
  /// Which attempt this is, from 1 on. Precondition: it is not empty.
  [[nodiscard]] int attempt() const noexcept;

  /// The record is processed. Without effect on an empty one.
  void complete() noexcept;
  /// The record is not processed; failure_policy decides what happens, on a thread of the
  /// library's. By default `cause` is the exception that is being handled. Without effect on an
  /// empty one.
  void fail(std::exception_ptr cause = std::current_exception()) noexcept;
  /// Fails with a std::runtime_error of this text.
  void fail(std::string_view message) noexcept;
  /// The handler makes progress: parallel_options::stuck_after counts from now on.
  void touch() noexcept;

 private:
  friend class detail::taken_record;
  explicit completion(std::unique_ptr<detail::taken_record> taken) noexcept;

  std::unique_ptr<detail::taken_record> taken_;
};

/// A function that starts to process one record, and later reports the result with the completion:
///
/// - `(completion)`
/// - `(completion, const shard_context&)`
/// - `(const shard_context&) -> Function`: as for basic_handler
///
/// An exception from the function counts as fail(), even if the completion was moved from. After
/// complete() an exception is only logged.
using async_record_handler = basic_handler<completion>;

/// How records are processed side by side.
/// Errors: the factory of `parallel` is not valid if `lanes`, `window_records` or `window_bytes`
/// is 0, a duration is negative, or there is a `key` without order::key.
/// Thread safety: a value; processors copy it.
struct parallel_options {
  /// The largest number of records that handlers process at the same time. For a record_handler it
  /// is the number of the shard's threads. For an async_record_handler it limits the completions
  /// not yet reported; with kclxx/asio.hpp, the coroutines.
  /// While new records are ready, retries have at most half of the lanes, but at least one.
  std::size_t lanes = 8;
  /// Which records of a shard wait for each other.
  kclxx::order order = order::key;
  /// The key of order::key; empty: the partition key. Log and events have the partition key. The
  /// function is called once for each delivered record, on the callbacks' thread; what it throws is
  /// treated as an exception from process_records, not as a failure of the record.
  std::function<std::string(const record&)> key{};

  /// The window is all records from the oldest incomplete one to the newest: at most this many.
  /// While it is full the daemon waits. After a crash at most the window, and what was completed
  /// since the last checkpoint, is processed again.
  std::size_t window_records = 10'000;
  /// The most bytes of data in the window. A batch's bytes count until its records and all earlier
  /// ones are complete. A record that is larger than the limit is admitted alone, once the window
  /// is empty.
  std::uint64_t window_bytes = std::uint64_t{64} << 20;

  /// A handler that runs for longer is reported in the log, and again each time that its time has
  /// doubled; so is a parking lot, or a function of the policy, that has a record. 0: never.
  std::chrono::milliseconds stuck_after{60'000};
  /// True: the first such report ends the session: with callback_stuck if the handler still runs
  /// after run_options::grace_time, otherwise with callback_failed.
  bool leave_when_stuck = false;

  /// How long shutdown_requested waits for records that are not complete. When a record ends the
  /// session during a callback, running handlers have this time, too; between two callbacks the
  /// session ends at once. `kclxx daemon check` recommends a shutdownGraceMillis of 25 s: with the
  /// default below, that leaves 10 s for the last checkpoint, which is run_options'
  /// shutdown_retry_limit.
  std::chrono::milliseconds drain_timeout{15'000};
};

/// The processor factory of a program that processes records side by side:
///
///     return kclxx::run(kclxx::parallel(handler, {}, {.lanes = 16}));
///
/// process_records returns as soon as the batch is in the window. The records before the oldest
/// incomplete one are checkpointed. shard_ended waits until all records are complete.
/// When a stop is requested (shard_context::stop_token), a handler should return: the processor's
/// destructor waits for it.
///
/// Errors: none. With an empty function, or a policy or options that cannot work, the factory is
/// not valid. Thread safety: the handler is called from several threads at the same time.
[[nodiscard]] KCLXX_EXPORT processor_factory parallel(record_handler handler,
                                                      failure_policy policy = {},
                                                      parallel_options options = {});

/// The form for a handler that only starts work. A completion reports its end, from any thread.
/// Thread safety: the handler is called on a thread of the shard's own, for one record at a time.
[[nodiscard]] KCLXX_EXPORT processor_factory parallel(async_record_handler handler,
                                                      failure_policy policy = {},
                                                      parallel_options options = {});

namespace detail {

/// `parallel` for a handler whose completions may cease to come. A callback that waits calls
/// `check_wait`, unless it is empty, at least every 200 ms; what that throws leaves the callback.
[[nodiscard]] KCLXX_EXPORT processor_factory parallel_with_check(async_record_handler handler,
                                                                 failure_policy policy,
                                                                 parallel_options options,
                                                                 std::function<void()> check_wait);

}  // namespace detail

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <system_error>

#include <kclxx/detail/export.hpp>

namespace kclxx {

/// Errors that do not come from the daemon, and what to do.
enum class errc {
  /// Another worker holds the lease and continues from the last checkpoint. Drop the work. A
  /// checkpoint in record_processor::lease_lost fails with this error, too.
  lease_lost = 1,
  /// The daemon closed its end, or the session ends. The records will be delivered again:
  /// return from the callback.
  daemon_gone,
  /// The deadline passed before the daemon answered. The position stays pending and is sent later;
  /// allow more time if this is frequent.
  timed_out,
  /// The position is after the last record delivered to this process. Checkpoint a delivered
  /// record, or call without a position.
  position_out_of_range,
  /// LATEST, AT_TIMESTAMP and SHARD_END cannot be checkpointed (TRIM_HORIZON covers nothing, and
  /// succeeds). Use the position of a record.
  invalid_position,
  /// The call would wait without end: in a timer. Use async_checkpoint.
  not_allowed_here,
  /// The daemon sent its next message without answering the checkpoint. Try again.
  not_answered,
  /// A store refused a write, since a later processor has taken the shard over: see fenced_error.
  /// Drop the work.
  fenced,
};

/// What the daemon reported, by the simple name of its exception.
enum class checkpoint_errc {
  /// ThrottlingException: the lease table is throttled. Retried automatically; checkpoint less
  /// often, or raise the table's capacity.
  throttled = 1,
  /// KinesisClientLibDependencyException: the lease table cannot be reached. Retried
  /// automatically; the daemon's log has the cause.
  dependency,
  /// ShutdownException: this worker no longer holds the lease. Drop the work.
  shutdown,
  /// InvalidStateException: the lease table is broken, or no checkpoint is permitted now. See the
  /// daemon's log.
  invalid_state,
  /// IllegalArgumentException: the position is out of the permitted range. Use a position between
  /// the last checkpoint and the last delivered record.
  illegal_argument,
  /// Any other exception. The log has its name, as has observer::checkpoint_answered.
  other,
};

/// What a program usually distinguishes; compare an error code with it:
/// `ec == checkpoint_condition::lease_gone`.
enum class checkpoint_condition {
  /// errc::lease_lost, errc::fenced or checkpoint_errc::shutdown: another worker has the shard.
  /// Drop the work.
  lease_gone = 1,
  /// checkpoint_errc::throttled or checkpoint_errc::dependency: temporary. The library retries; so
  /// may you.
  retryable,
};

/// The categories of errc, of checkpoint_errc and of checkpoint_condition.
/// Lifetime: never destroyed, so that error codes can be used during exit, too.
[[nodiscard]] KCLXX_EXPORT const std::error_category& local_category() noexcept;
/// The category of checkpoint_errc. Lifetime: as of local_category.
[[nodiscard]] KCLXX_EXPORT const std::error_category& checkpoint_category() noexcept;
/// The category of checkpoint_condition. Lifetime: as of local_category.
[[nodiscard]] KCLXX_EXPORT const std::error_category& checkpoint_condition_category() noexcept;
/// The code of an errc, for std::error_code.
[[nodiscard]] KCLXX_EXPORT std::error_code make_error_code(errc value) noexcept;
/// The code of a checkpoint_errc, for std::error_code.
[[nodiscard]] KCLXX_EXPORT std::error_code make_error_code(checkpoint_errc value) noexcept;
/// The condition of a checkpoint_condition, for std::error_condition.
[[nodiscard]] KCLXX_EXPORT std::error_condition make_error_condition(
    checkpoint_condition value) noexcept;

/// The code for an error that the daemon reported.
[[nodiscard]] KCLXX_EXPORT std::error_code make_checkpoint_error_code(
    std::string_view daemon_name) noexcept;

/// The simple name of the daemon's exception for `code`; empty for checkpoint_errc::other, and when
/// the error did not come from the daemon.
/// Lifetime: static.
[[nodiscard]] KCLXX_EXPORT std::string_view daemon_error_name(const std::error_code& code) noexcept;

/// A checkpoint that was not persisted. `code()` is an errc or an error of checkpoint_category.
/// Thread safety: immutable; copies may be used on any thread.
class KCLXX_EXPORT checkpoint_error : public std::system_error {
 public:
  /// Precondition: `code` is an errc or an error of checkpoint_category, and not empty.
  explicit checkpoint_error(std::error_code code) : std::system_error(code) {}

  /// As daemon_error_name.
  [[nodiscard]] std::string_view name() const noexcept { return daemon_error_name(code()); }
};

/// Reports that a store, which admits one writer per shard, refuses this processor. code() is
/// errc::fenced.
///
/// Throw it where the store refuses a transaction: from the processor's constructor, a callback, a
/// timer or a checkpoint handler. The library treats it as a lost lease: it logs `reason`, calls no
/// callback but lease_lost, and continues the session (see record_processor).
/// Thread safety: immutable; copies may be used on any thread.
class KCLXX_EXPORT fenced_error : public std::system_error {
 public:
  /// `reason`: who refused what, for instance "totals of shardId-000000000003: epoch 7, not 6".
  explicit fenced_error(const std::string& reason)
      : std::system_error(make_error_code(errc::fenced), reason) {}
};

namespace detail {

/// what() of an exception of user code, which may be null.
inline const char* text_of(const std::exception& error) noexcept {
  const char* const text = error.what();
  return text == nullptr ? "a std::exception without a text" : text;
}

}  // namespace detail

}  // namespace kclxx

template <>
struct std::is_error_code_enum<kclxx::errc> : std::true_type {};
template <>
struct std::is_error_code_enum<kclxx::checkpoint_errc> : std::true_type {};
template <>
struct std::is_error_condition_enum<kclxx::checkpoint_condition> : std::true_type {};

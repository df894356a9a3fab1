// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <kclxx/export.hpp>

namespace kclxx {

/// Why this library refused or gave up a checkpoint by itself. The message of each value says
/// what to do.
enum class errc {
  lease_lost = 1,    ///< this worker no longer holds the lease
  daemon_gone,       ///< the daemon closed its end, or this process is leaving
  timed_out,         ///< the deadline passed; the position stays pending
  not_delivered,     ///< beyond the last record delivered so far
  not_a_number,      ///< TRIM_HORIZON, LATEST, AT_TIMESTAMP or SHARD_END
  not_allowed_here,  ///< waiting inside initialize or lease_lost
  not_answered,      ///< the daemon went on without answering
};

/// What the daemon reported, by the simple name of its Java exception.
enum class checkpoint_errc {
  throttled = 1,     ///< ThrottlingException; retried
  dependency,        ///< KinesisClientLibDependencyException; retried
  shutdown,          ///< ShutdownException: this worker no longer holds the lease
  invalid_state,     ///< InvalidStateException: the lease table, or a phase without checkpoints
  illegal_argument,  ///< IllegalArgumentException: out of the permitted range
  other,             ///< any other name; see checkpoint_error::name()
};

[[nodiscard]] KCLXX_EXPORT const std::error_category& local_category() noexcept;
[[nodiscard]] KCLXX_EXPORT const std::error_category& checkpoint_category() noexcept;
[[nodiscard]] KCLXX_EXPORT std::error_code make_error_code(errc value) noexcept;
[[nodiscard]] KCLXX_EXPORT std::error_code make_error_code(checkpoint_errc value) noexcept;

/// The vocabulary's value for a name from the daemon; `other` for those not listed.
[[nodiscard]] KCLXX_EXPORT checkpoint_errc
checkpoint_errc_from_name(std::string_view name) noexcept;
/// True for the errors that go away by themselves: ThrottlingException and
/// KinesisClientLibDependencyException.
[[nodiscard]] KCLXX_EXPORT bool is_retryable(checkpoint_errc value) noexcept;

/// A checkpoint that was not persisted. `code()` is an errc or a checkpoint_errc.
class KCLXX_EXPORT checkpoint_error : public std::system_error {
 public:
  checkpoint_error(std::error_code code, std::string name)
      : std::system_error(code, name), name_(std::move(name)) {}
  explicit checkpoint_error(std::error_code code) : std::system_error(code) {}

  /// The daemon's own name for the error; empty when it did not come from the daemon.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

}  // namespace kclxx

template <>
struct std::is_error_code_enum<kclxx::errc> : std::true_type {};
template <>
struct std::is_error_code_enum<kclxx::checkpoint_errc> : std::true_type {};

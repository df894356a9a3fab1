// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <exception>
#include <memory>
#include <string_view>

#include <kclxx/detail/export.hpp>
#include <kclxx/processing/handler.hpp>
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
  completion(completion&&) noexcept;
  /// A record that this object held, and that was not reported, counts as failed.
  completion& operator=(completion&& other) noexcept;
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
  /// The same, with a std::runtime_error of this text.
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

}  // namespace kclxx

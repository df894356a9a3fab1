// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <kclxx/export.hpp>
#include <kclxx/processing/parking_lot.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

/// Thrown by a handler for a record that can never succeed. Whatever failure_policy::attempts is,
/// the record is tried again only if park() throws.
/// Thread safety: immutable; copies may be used on any thread.
class KCLXX_EXPORT permanent_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  permanent_error(const permanent_error&) noexcept = default;
  permanent_error& operator=(const permanent_error&) noexcept = default;
  ~permanent_error() override;
};

/// Thrown by a batch_handler that knows which record failed: the records before `position` are
/// complete. A position outside the batch is ignored, and the batch is halved.
/// Thread safety: immutable; copies may be used on any thread, and share the cause.
class KCLXX_EXPORT batch_failure : public std::exception {
 public:
  /// Policy, log and parking lot use `cause`, or this exception if `cause` is null.
  /// Errors: std::bad_alloc.
  explicit batch_failure(const sequence_position& position, std::exception_ptr cause = nullptr);
  batch_failure(const batch_failure&) noexcept = default;
  batch_failure& operator=(const batch_failure&) noexcept = default;
  ~batch_failure() override;

  [[nodiscard]] const char* what() const noexcept override { return text_->c_str(); }
  [[nodiscard]] const sequence_position& position() const noexcept { return position_; }
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

 private:
  sequence_position position_;
  std::exception_ptr cause_;
  std::shared_ptr<const std::string> text_;  // copying an exception does not throw
};

/// What happens to a record that failed for good: its attempts are used up, it is too old, or the
/// error is not retryable.
enum class exhausted {
  /// The exception leaves the callback, and the session ends with exit_status::callback_failed.
  /// The daemon then ends its whole worker, and the record is delivered again.
  stop,
  /// The record is logged and counts as complete. Its data is gone with the stream's retention.
  skip,
  /// The record is stored in the parking lot, logged, and counts as complete.
  park,
};

/// Stops, instead of skipping or parking, when more than `ratio` of the last `window` records
/// failed for good. So many failures mean that a dependency is down, and an outage must not move
/// the whole stream into a file. Records not yet seen count as good, so with the defaults 100
/// failures in a row are allowed.
/// Thread safety: a value.
struct flood_breaker {
  int window = 200;    ///< records; 0 turns it off
  double ratio = 0.5;  ///< from 0 to 1
};

/// What happens when the handler of a record throws. With the defaults nothing is lost: five
/// attempts, then the session ends.
///
/// A checkpoint_error of a lost lease (checkpoint_condition::lease_gone) and a fenced_error are no
/// failures of the record: they leave the callback at once. A requested stop
/// (shard_context::stop_token) ends the attempts, too; the record is then not complete.
///
/// Errors: a negative number or duration, or a ratio beyond its limits, ends the session when a
/// shard starts (exit_status::callback_failed).
/// Thread safety: a value; processors copy it. Its functions may be called from several threads.
struct failure_policy {
  /// Attempts per record, the first included. 5 means 1.5 to 3 s of waits: enough for a connection
  /// to be made again, and short enough for the daemon's limits. 0: unlimited.
  int attempts = 5;
  /// The wait after the first failure is `initial_backoff`. Each further wait is twice as long, up
  /// to `max_backoff`. A random part of up to half is subtracted, so that shards do not retry at
  /// the same time. With `each` and `batches` the shard waits meanwhile. With `parallel` and
  /// order::key only the later records of the same key do.
  std::chrono::milliseconds initial_backoff{200};
  std::chrono::milliseconds max_backoff{5000};
  /// A failed record that has been in the stream for longer is not tried again. Unset: age does not
  /// matter. That is the default, since after an outage every record is old. A record without an
  /// arrival time has no age limit.
  std::optional<std::chrono::seconds> max_age{};
  /// Returns false for an exception that must not be retried. It is called only for a
  /// std::exception that is no permanent_error. A permanent_error is retried only if park() throws.
  /// What is not a std::exception is always retried. Empty: all but a permanent_error are retried.
  /// Precondition: the function does not throw.
  std::function<bool(const std::exception&)> retryable{};
  /// What happens when a record has failed for good. The default is `stop`, because `skip` loses
  /// the record, and `park` continues without it.
  kclxx::exhausted exhausted = kclxx::exhausted::stop;
  /// Where `park` stores records. Null: a parking_file in the directory that the environment
  /// variable KCLXX_PARKING_DIR names, or else in the working directory.
  std::shared_ptr<parking_lot> lot{};
  /// For `skip` and `park`.
  flood_breaker flood{};

  /// The longest time that the waits between one record's attempts can take together. The
  /// handler's own time is not included. std::nullopt: without limit.
  [[nodiscard]] KCLXX_EXPORT std::optional<std::chrono::milliseconds> patience() const;
};

}  // namespace kclxx

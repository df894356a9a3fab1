// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <chrono>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <kclxx/detail/export.hpp>
#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>

namespace kclxx {

class shard_context;

/// A record that failed for good, and why.
/// Lifetime: the record is valid during park().
struct failed_record {
  /// The record as it was delivered.
  const kclxx::record& record;
  int attempts;             ///< those that failed
  std::string first_error;  ///< what the first attempt threw
  std::string last_error;   ///< what the last attempt threw
};

/// Where failed records are stored for later: a dead-letter queue. Derive from it to use a queue or
/// a table of your own.
/// Thread safety: both functions may be called from several threads at the same time.
class KCLXX_EXPORT parking_lot {
 public:
  parking_lot() = default;
  parking_lot(const parking_lot&) = delete;
  parking_lot& operator=(const parking_lot&) = delete;
  virtual ~parking_lot();

  /// Called before the first record of a shard. A parking lot that cannot work throws here.
  /// Errors: any exception. It is logged; the shard starts, and prepare() is called again before a
  /// record is parked. A lost lease as in park().
  /// Blocking: it may; the shard waits.
  virtual void prepare(const shard_context& shard);

  /// Stores the records that failed in one call of the handler, at least one. It returns once they
  /// are durable: from then on they count as complete. After a crash a record can be parked twice.
  /// Errors: any exception. None of the records is then complete: they are tried again. A
  /// fenced_error, or the checkpoint_error of a lost lease, is treated as one from the handler.
  /// Blocking: until they are durable.
  virtual void park(const shard_context& shard, std::span<const failed_record> failed) = 0;
};

/// The line of a parking_file, with its end: what `kclxx replay --parked` reads. For a parking lot
/// of your own.
[[nodiscard]] KCLXX_EXPORT std::string parked_line(const shard_context& shard,
                                                   const failed_record& failed);

/// A parking lot of JSON Lines files, one for each shard: `SHARD.parked.jsonl` or, when the names
/// are known, `APPLICATION.STREAM.SHARD.parked.jsonl`. docs/failures.md has the fields;
/// `kclxx replay --parked` delivers the records again.
///
/// Each record is one line; the lines of one call are synchronized to disk once, before park()
/// returns. Several processes may share the directory. A new file can be read by its owner only. A
/// file is refused that is no regular file, another user's, or writable by others.
/// Thread safety: all functions may be called from any thread.
class KCLXX_EXPORT parking_file final : public parking_lot {
 public:
  /// Nothing is opened yet. The directory must exist when the first shard starts. A relative one is
  /// resolved now.
  /// Errors: std::bad_alloc; std::system_error for an empty path.
  explicit parking_file(const std::filesystem::path& directory);
  ~parking_file() override;

  /// Opens the file, and locks it, but does not wait for another process's lock. An empty file is
  /// removed again.
  /// Errors: std::system_error when that is impossible.
  /// Blocking: until the file system has answered.
  void prepare(const shard_context& shard) override;
  /// Errors: std::system_error when the file cannot be opened, written or synchronized, or another
  /// process has locked it for 5 s. What was written is removed, where that is possible.
  /// Blocking: until the disk has the records, and while another process writes to the file.
  void park(const shard_context& shard, std::span<const failed_record> failed) override;

  /// The file of this shard, whether or not it exists. In its name every character but letters,
  /// digits, `-`, `_` and `.` is replaced by `_`. A name of more than 200 characters has a hash in
  /// the place of its middle.
  [[nodiscard]] std::filesystem::path file_of(const shard_context& shard) const;

 private:
  std::filesystem::path directory_;
};

/// Thrown by a handler for a record that can never succeed, on any attempt. The session does not
/// try it again, unless park() throws.
/// Thread safety: immutable; copies may be used on any thread.
class KCLXX_EXPORT permanent_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  permanent_error(const permanent_error&) noexcept = default;
  permanent_error& operator=(const permanent_error&) noexcept = default;
  ~permanent_error() override;
};

/// Thrown by a handler when what it needs is away, a database for instance: no record's fault. It
/// opens the circuit at once, and counts as an attempt of no record. A batch that was not processed
/// comes again as it was.
/// Thread safety: immutable; copies may be used on any thread.
class KCLXX_EXPORT outage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
  outage_error(const outage_error&) noexcept = default;
  outage_error& operator=(const outage_error&) noexcept = default;
  ~outage_error() override;
};

/// Thrown by a batch_handler that knows which records failed.
/// Thread safety: immutable; copies may be used on any thread, and share the causes.
class KCLXX_EXPORT batch_failure : public std::exception {
 public:
  /// A record that failed an attempt. Policy, log and parking lot use `cause`; if that is null, the
  /// batch_failure.
  struct failed {
    /// The position of a record of the batch.
    sequence_position position;
    /// Why it failed; null if the batch_failure itself is the reason.
    std::exception_ptr cause{};
  };

  /// The record at `position` failed, and later ones were not tried: they come again together.
  /// Earlier records are complete. A position that no record of the batch has is ignored: the
  /// handler then gets halves, as after any other exception.
  explicit batch_failure(const sequence_position& position, std::exception_ptr cause = nullptr);
  /// These records failed, and come again without the others, which are complete (but see
  /// batch_options::order). `last_tried`: the records after it were not tried, and come again, too.
  /// A position that no record of the batch has is ignored. When no position remains, the handler
  /// gets halves.
  /// Errors: std::invalid_argument for no record; std::bad_alloc.
  explicit batch_failure(std::vector<failed> records,
                         std::optional<sequence_position> last_tried = std::nullopt);
  batch_failure(const batch_failure&) noexcept = default;
  batch_failure& operator=(const batch_failure&) noexcept = default;
  ~batch_failure() override;

  /// A text with the position of the first record and its cause.
  [[nodiscard]] const char* what() const noexcept override { return contents_->text.c_str(); }
  /// The records that failed, in the order of the call. It is not empty.
  [[nodiscard]] const std::vector<failed>& records() const noexcept { return contents_->records; }
  /// std::nullopt: all records were tried.
  [[nodiscard]] const std::optional<sequence_position>& last_tried() const noexcept {
    return contents_->last_tried;
  }

 private:
  struct contents {
    std::vector<failed> records;
    std::optional<sequence_position> last_tried;
    std::string text;
  };
  std::shared_ptr<const contents> contents_;  // copying an exception does not throw
};

/// What happens to a bad record; see failure_policy.
enum class bad_record {
  /// The exception leaves the callback, and the session ends with exit_status::callback_failed.
  /// The daemon then ends its whole worker, and the record is delivered again.
  stop,
  /// The record is logged and counts as complete. Its data is gone with the stream's retention.
  skip,
  /// The record is stored in the parking lot, logged, and counts as complete.
  park,
};

/// Keeps an outage from making records bad. A shard's circuit opens after `failures` failures in a
/// row, or at once at an outage_error. `each` and `batches` count attempts, but not those of a
/// record that failed before the last success; a call that completes a record of its batch is a
/// success. `parallel` counts each record once, at its first failure, since other records go on
/// meanwhile. Permanent errors do not count.
///
/// While the circuit is open, no attempt is counted for failure_policy::max_attempts: so with
/// `each` and `batches` `failures` has to be larger for a record that fails alone to use up its
/// attempts. The handler is called for one record at a time, with `parallel` for new records first,
/// after waits that double from failure_policy::max_backoff to `max_wait`. The first success closes
/// the circuit.
struct circuit_breaker {
  int failures = 20;                           ///< at least 1
  std::chrono::milliseconds max_wait{30'000};  ///< 0 counts as 1 ms
};

/// What happens when the handler of a record throws. With the defaults nothing is lost: the record
/// is tried again until it succeeds, and one with a permanent error ends the session.
///
/// A record is bad when its error is permanent, when `max_attempts` attempts were counted, or when
/// it is older than `max_age`. Then it is not tried again, and `bad_record` decides.
///
/// A checkpoint_error of a lost lease (checkpoint_condition::lease_gone) and a fenced_error, from
/// the handler or from park(), are no failures of the record: they leave the callback at once. A
/// requested stop (shard_context::stop_token) ends the attempts, too; the record is then not
/// complete.
///
/// Errors: the factories of `each`, `batches` and `parallel` are not valid (processor_factory) for
/// a number below its minimum, a negative duration, and bad_record::park without a parking lot.
/// Thread safety: a value; processors copy it. Its functions may be called from several threads.
struct failure_policy {
  /// Attempts per record, the first included; at least 1. Unset: without end.
  std::optional<int> max_attempts{};
  /// The wait after the first failure is `initial_backoff`. Each further wait is twice as long.
  /// None is longer than `max_backoff`. 0 counts as 1 ms, more than a day as a day. Up to half of a
  /// wait is left out at random, so that shards do not retry at the same time. With `each` and
  /// `batches` the shard waits meanwhile. With `parallel` and order::key only the later records of
  /// the same key do.
  std::chrono::milliseconds initial_backoff{200};
  /// The longest wait between two attempts of a record; see initial_backoff.
  std::chrono::milliseconds max_backoff{5000};
  /// A failed record that has been in the stream for longer is bad, but not after an outage_error.
  /// Unset: age does not matter. That is the default, since after an outage every record is old. A
  /// record without an arrival time has no age limit.
  std::optional<std::chrono::seconds> max_age{};
  /// Returns whether no further attempt can succeed after this exception. A permanent_error is
  /// always permanent. Empty: no other exception is.
  /// Precondition: the function does not throw.
  std::function<bool(const std::exception&)> is_permanent{};
  /// Returns whether this exception tells of an outage, as an outage_error does. Asked before
  /// is_permanent. Empty: no other exception does.
  /// Precondition: the function does not throw.
  std::function<bool(const std::exception&)> is_outage{};
  /// The default is `stop`, because `skip` loses the record, and `park` continues without it.
  kclxx::bad_record bad_record = kclxx::bad_record::stop;
  /// Where `park` stores records. Null: a parking_file in the directory that the environment
  /// variable KCLXX_PARKING_DIR names.
  std::shared_ptr<parking_lot> lot{};
  /// Unset: only an outage_error opens the circuit.
  std::optional<circuit_breaker> breaker{std::in_place};
};

}  // namespace kclxx

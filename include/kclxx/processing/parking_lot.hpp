// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <kclxx/detail/export.hpp>
#include <kclxx/record.hpp>

namespace kclxx {

class shard_context;

/// A record that failed for good, and why.
/// Lifetime: the record is valid during park().
struct failed_record {
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
  /// digits, `-`, `_` and `.` is replaced by `_`.
  [[nodiscard]] std::filesystem::path file_of(const shard_context& shard) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace kclxx

// SPDX-License-Identifier: Apache-2.0
// See kclxx/kclxx.hpp for the default contract of errors, threads and blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kclxx/archive/store.hpp>
#include <kclxx/record.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/shard_context.hpp>

namespace kclxx::archive {

/// A file of a commit. Its name in the store is
/// `FOLDER/APPLICATION.STREAM.SHARD.NUMBER.RANDOM` and `suffix`; no other file ever has it.
struct file {
  std::string folder;  ///< for instance "tenant=a/date=2026-11-29/hour=07"
  std::string suffix;  ///< for instance ".json.gz"
  /// The bytes of the file.
  std::string content;
};

/// A part of file::folder: `KEY=VALUE`, as Hive, Spark and Athena write a partition. Bytes of the
/// value but A-Z, a-z, 0-9, '-', '_' and '.' become %XX.
/// Errors: std::length_error when the part is longer than a store can have: 255 bytes.
[[nodiscard]] std::string partition(std::string_view key, std::string_view value);

/// The commits of one shard. Each record is in the files of one commit, whatever crashes, and
/// although several workers may archive the shard. A file that has its name is complete, and never
/// changes. The objects that the log needs are in `_kclxx/APPLICATION/STREAM/SHARD/`, which readers
/// such as Athena and Spark do not look into. docs/exactly-once.md has the states of a commit.
/// Thread safety: none.
class commit_log {
 public:
  /// How many of the newest commits stay in the log, for people who look into it.
  static constexpr std::uint64_t kept_commits = 8;

  /// Nothing is read yet. Names that are unknown are "unknown".
  commit_log(std::shared_ptr<store> store, const shard_context& shard);

  /// Calls `files_of` with the records that are not committed yet, until one commit has all of
  /// them: once, but again when another worker has committed some of them meanwhile. `Records` is a
  /// record_batch or a json_batch. `files_of` returns a std::vector<file>, which may be empty.
  /// Errors: std::system_error of the store: all or none of the records are then committed, and the
  /// next call finds out. What `files_of` throws.
  template <class Records, class FilesOf>
  void commit(Records records, FilesOf&& files_of) {
    for (;;) {
      records = records.after(position());
      if (records.empty()) return;
      if (try_commit(files_of(records), position_of(records.back()))) return;
    }
  }

  /// The position of the last record that is committed; TRIM_HORIZON when none is. The first call,
  /// and the first one after an error, reads it, and finishes the newest commit.
  [[nodiscard]] const sequence_position& position();

  /// Commits these files, and `position` with them. False: another worker has made a commit
  /// meanwhile, so position() has to be called again.
  /// Errors: std::system_error of the store; std::errc::filename_too_long for a folder of more than
  /// 600 bytes; std::errc::invalid_argument for a folder that is empty, or has a part that is
  /// empty, or begins with '_' or '.'.
  bool try_commit(std::vector<file> files, const sequence_position& position);

 private:
  static sequence_position position_of(const record& last) { return last.position(); }
  static sequence_position position_of(const auto& last) { return last.record.position(); }

  void load();
  void finish(const std::string& commit_text, std::span<const std::string> log_names);
  [[nodiscard]] std::string name_of(std::uint64_t number) const;

  std::shared_ptr<store> store_;
  std::string log_folder_;
  std::string file_name_prefix_;  ///< what comes before the number in the name of a final file
  bool has_taken_over_ = false;   ///< attempts of earlier workers cannot become commits
  bool is_loaded_ = false;        ///< the members below are those of the newest commit
  std::uint64_t newest_number_ = 0;
  sequence_position position_{"TRIM_HORIZON"};
};

/// Makes a part of an object's name from a name: at most 64 bytes of A-Z, a-z, 0-9, '-', '_' and
/// '.', the first of which is no '_' or '.'. A name that is no such part is shortened, and ends in
/// a hash of the whole name, so that different names stay different.
[[nodiscard]] std::string name_part(std::string_view name);
/// `_kclxx/APPLICATION/STREAM/SHARD`, of name_part().
[[nodiscard]] std::string folder_of(const shard_context& shard);
/// 32 hexadecimal digits that no other process, nor another call, gets.
[[nodiscard]] std::string random_name();

/// What one commit of `files` files asks of a store, and what a stream leaves in it.
struct commit_cost {
  std::uint64_t writes;   ///< of S3: PUT, COPY and LIST requests, which have one price
  std::uint64_t deletes;  ///< of S3: DELETE requests, which cost nothing
  std::uint64_t syncs;    ///< of a folder: fsync of files and folders; two more for a new folder
};
/// The cost of one commit of this many files.
[[nodiscard]] constexpr commit_cost cost_of(std::uint64_t files) {
  return {.writes = 2 * files + 2, .deletes = files + 1, .syncs = 2 * files + 3};
}
/// The files that a stream makes in an hour, when each commit of a shard has a file for each
/// tenant.
[[nodiscard]] constexpr std::uint64_t files_an_hour(std::uint64_t tenants, std::uint64_t shards,
                                                    std::uint64_t seconds_between_commits) {
  return tenants * shards * 3600 / seconds_between_commits;
}

}  // namespace kclxx::archive

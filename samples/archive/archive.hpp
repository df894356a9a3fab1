// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <kclxx/json.hpp>
#include <kclxx/kclxx.hpp>

#include "store.hpp"

/// An event is any JSON object with the time at which it happened.
struct event {
  std::int64_t at = 0;  ///< milliseconds since 1970
};
/// Errors: what makes the record a bad one: no `at`, or none before the year 10000.
void from_json(const nlohmann::json& value, event& result);

/// One shard's part of an archive: for each commit, and each hour that its events are of, a file
/// HOUR/SHARD.NUMBER.json.gz of JSON lines. Each event is in one file, whatever crashes, and
/// although two workers may archive one shard.
///
/// A commit is an object commits/SHARD/NUMBER, which only one worker can make. It names the files,
/// which are staged before it, and the position of the last event in them. Numbers have no gaps. A
/// worker that cannot make a commit, or has just started, reads the newest one, and finishes it: it
/// gives the files their final names. Then it leaves out the events up to the position. Commits are
/// never removed: a worker that was suspended would make one of them again.
class shard_archive {
 public:
  shard_archive(std::shared_ptr<store> store, std::string shard);

  /// Returns when all events are in the archive.
  /// Errors: std::system_error; nothing, or all of a commit, is then in the archive.
  void add(kclxx::json_batch<event> events);

 private:
  using contents = std::map<std::string, std::string>;  // by the file's name in its commit: HOUR

  void load();
  void finish(const std::string& commit);
  bool commit(const contents& by_hour, const kclxx::sequence_position& position);
  [[nodiscard]] std::string commit_name(std::uint64_t number) const;
  [[nodiscard]] std::string staged_folder() const { return "staged/" + shard_; }

  std::shared_ptr<store> store_;
  std::string shard_;
  bool is_loaded_ = false;  // the members below are those of the newest commit, or of an older one
  std::uint64_t newest_ = 0;
  kclxx::sequence_position position_{"TRIM_HORIZON"};
};

struct archive_limits {
  std::size_t records = 100'000;
  std::uint64_t bytes = 64 << 20;
  std::chrono::milliseconds time = std::chrono::minutes(1);
};

/// Archives the shards of one stream. Events that are no JSON object with a time are parked.
kclxx::processor_factory archive(std::shared_ptr<store> store, archive_limits limits = {},
                                 std::shared_ptr<kclxx::parking_lot> lot = {});

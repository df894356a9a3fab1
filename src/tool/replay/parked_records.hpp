// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <kclxx/sequence_position.hpp>

#include "tool/replay/replay_result.hpp"

namespace kclxx::replay {

/// What is in a file that is no file of parked records; what() begins with the file and the line.
class parked_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The parked records of one shard, as the daemon would deliver them.
struct parked_shard {
  std::string files;      ///< where they come from
  std::string shard;      ///< where they were parked; they come again under another name
  std::size_t lines = 0;  ///< with those of records that were parked more than once
  /// The daemon's lines: initialize, the records in order of their positions, and an orderly stop,
  /// so that the child checkpoints what is complete.
  std::string dialogue;
  std::vector<sequence_position> positions;  ///< in order
};

/// Reads files of parked records (docs/failures.md). A record that was parked twice is one, also
/// when it failed again under the name of an earlier run.
/// Thread safety: none. Needs memory for all records.
class parked_records {
 public:
  /// Errors: parked_error.
  void add_file(const std::string& name, std::string_view text);

  /// With names for the shards that begin with `run`, a name made by new_run().
  [[nodiscard]] std::vector<parked_shard> shards(const std::string& run);
  /// "parked-20261128T085412Z-5f0c9e21": new also beside runs of the same second, on any machine.
  static std::string new_run();
  /// Whether it is as new_run() makes it.
  static bool is_run(std::string_view name);
  /// "FILE:LINE" of what a crash cut off. Such a record was not complete, so it was delivered
  /// again.
  [[nodiscard]] const std::vector<std::string>& cut_off() const noexcept { return cut_off_; }

 private:
  struct parked {
    std::string place;  ///< "FILE:LINE"
    std::optional<std::string> data;
    std::optional<std::string> partition_key;
    std::optional<std::chrono::milliseconds> arrival;
  };
  struct shard {
    std::vector<std::string> files;
    std::map<sequence_position, parked> records;
    std::size_t lines = 0;

    void add(const sequence_position& position, parked one);
    void add(shard other);
  };
  // Application, stream and id: shards of different streams have the same ids.
  using shard_name = std::tuple<std::string, std::string, std::string>;

  void add_line(const std::string& file, const std::string& place, std::string_view line);
  void join_unnamed_streams();
  static parked_shard play(const std::string& name, const shard& shard);

  std::map<shard_name, shard> shards_;
  std::vector<std::string> cut_off_;
};

/// `run` is the name of an earlier run to be continued; without one, a new one is made. It and what
/// was cut off are named on stderr. Blocking: a process that is just parking a record.
/// Errors: command_error for what is no file of parked records; std::system_error.
std::vector<parked_shard> read_parked_files(const std::vector<std::string>& files, std::string run);

/// Adds to the result of each shard how many records it has, and how many are complete.
void count_parked(const std::vector<parked_shard>& shards, replay_result& played);

}  // namespace kclxx::replay

// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/parked_files.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <sys/file.h>
#include <system_error>

#include "io/descriptor.hpp"
#include "tool/command_error.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace {

/// A process that began to park a record before the file was moved away ends the line under this
/// lock. Without the lock the file is read as it is.
void wait_for_writer(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return;  // a pipe can be opened once
  const io::descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  while (::flock(opened.get(), LOCK_SH) != 0 && errno == EINTR) {
  }
}

}  // namespace

std::vector<replay::parked_shard> read_parked_files(const std::vector<std::string>& files,
                                                    std::string run) {
  if (run.empty()) run = replay::parked_records::new_run();
  replay::parked_records records;
  std::vector<replay::parked_shard> shards;
  try {
    for (const std::string& file : files) {
      wait_for_writer(file);
      records.add_file(file, text_of_file(file));
    }
    shards = records.shards(run);
  } catch (const replay::parked_error& error) {
    throw command_error(exit_status::bad_transcript, error.what());
  }
  for (const std::string& place : records.cut_off()) {
    std::cerr << "kclxx replay: " << place
              << ": left out, since it is cut off: a record is complete once its line is whole\n";
  }
  if (shards.empty()) {
    throw command_error(exit_status::bad_transcript, "there is no parked record in the files");
  }
  std::cerr << "kclxx replay: the names of the shards begin with " << run
            << "; to continue this run if it breaks off: --as " << run << "\n";
  return shards;
}

void count_parked(const std::vector<replay::parked_shard>& shards, replay_result& played) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    replayed_shard& shard = played.shards[i];
    const auto reached = shard.summary.resume.value_or(sequence_position("TRIM_HORIZON"));
    const auto& positions = shards[i].positions;  // in order
    const auto end = std::upper_bound(positions.begin(), positions.end(), reached);
    shard.parked = parked_count{shards[i].shard, shards[i].lines, positions.size(),
                                static_cast<std::size_t>(end - positions.begin())};
  }
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_shard.hpp"

#include <optional>
#include <utility>

#include "tool/process/child_dialogue.hpp"
#include "tool/replay/player.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace {

/// Why the transcript cannot be compared with a child, or nullptr.
const char* why_not_comparable(const transcript::reader& reader, replay::expectation expected) {
  if (expected == replay::expectation::answers && !reader.head()) {
    return "the file has only the daemon's lines, so --expect has nothing to compare "
           "with; --expect-final has";
  }
  if (expected != replay::expectation::none && reader.head() && reader.head()->command.empty()) {
    return "it was made without a child, so there is nothing to compare with";
  }
  return nullptr;
}

/// Plays the transcript against one child, the first or a successor.
void play_to_child(const std::string& file, const std::vector<std::string>& command,
                   const replay::options& options, replay::shard_state& shard,
                   shard_progress& progress) {
  input_file source(file);
  std::optional<transcript::reader> reader;
  try {
    reader.emplace(source, file);
  } catch (const transcript::transcript_error& error) {
    shard.result.damage = replay::diagnostic{error.line_number(), error.problem(), {}};
    return;
  }
  if (const char* const problem = why_not_comparable(*reader, options.expected)) {
    shard.result.damage = replay::diagnostic{1, problem, {}};
    return;
  }
  child_dialogue child(command);
  replay::player player(options, shard, *reader, child);
  while (player.play_next()) {
    progress.played_bytes.store(reader->delivered(), std::memory_order_relaxed);
    progress.records.store(shard.result.counts.records, std::memory_order_relaxed);
  }
  player.finish();
}

}  // namespace

replay::summary replay_shard(const std::string& file, const std::vector<std::string>& command,
                             const replay::options& options, shard_progress& progress) {
  replay::shard_state shard(options);
  do {
    play_to_child(file, command, options, shard, progress);
  } while (shard.successor_begins);
  return std::move(shard.result);
}

}  // namespace kclxx::tool

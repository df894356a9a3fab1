// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_shard.hpp"

#include <optional>
#include <string_view>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "io/line_writer.hpp"
#include "tool/process/child_dialogue.hpp"
#include "tool/replay/player.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace {

/// Passes on a child's stderr, with no line cut by another child's.
class whole_lines {
 public:
  ~whole_lines() { write(begun_.size()); }
  void take(std::string_view text) {
    begun_.append(text);
    write(begun_.size() < longest ? begun_.rfind('\n') + 1 : begun_.size());
  }

 private:
  static constexpr std::size_t longest = std::size_t{1} << 20;

  void write(std::size_t size) {
    const std::error_code ignored = io::write_all(STDERR_FILENO, {begun_.data(), size});
    static_cast<void>(ignored);
    begun_.erase(0, size);
  }

  std::string begun_;
};

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
                   const replay::options& options, replay::shard_state& shard) {
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
  whole_lines error;
  child_dialogue child(command, [&error](std::string_view text) { error.take(text); });
  replay::player player(options, shard, *reader, child);
  while (player.play_next()) {
  }
  player.finish();
}

}  // namespace

replay::summary replay_shard(const std::string& file, const std::vector<std::string>& command,
                             const replay::options& options) {
  replay::shard_state shard(options);
  do {
    play_to_child(file, command, options, shard);
  } while (shard.successor_begins);
  return std::move(shard.result);
}

}  // namespace kclxx::tool

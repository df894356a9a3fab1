// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_files.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "tool/command_error.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/process/child_dialogue.hpp"
#include "tool/replay/effect_files.hpp"
#include "tool/replay/player.hpp"
#include "tool/transcript/reader.hpp"
#include "tool/transcript/transcript_file.hpp"

namespace kclxx::tool {

namespace {

class text_source : public transcript::byte_source {
 public:
  explicit text_source(std::string_view text) : left_(text) {}
  std::size_t read(char* target, std::size_t size) override {
    const std::size_t taken = left_.copy(target, size);
    left_.remove_prefix(taken);
    return taken;
  }

 private:
  std::string_view left_;
};

std::unique_ptr<transcript::byte_source> source_of(const replay_input& input) {
  if (input.text) return std::make_unique<text_source>(*input.text);
  return std::make_unique<input_file>(input.name);
}

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
void play_to_child(const replay_input& input, const std::vector<std::string>& command,
                   const replay::options& options, replay::shard_state& shard) {
  const auto source = source_of(input);
  std::optional<transcript::reader> reader;
  try {
    reader.emplace(*source, input.name);
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

/// Plays one transcript. What is wrong with it or the child is in the summary.
/// Errors: std::system_error when the file cannot be read; start_error.
replay::summary replay_shard(const replay_input& input, const std::vector<std::string>& command,
                             const replay::options& options) {
  replay::shard_state shard(options);
  do {
    play_to_child(input, command, options, shard);
  } while (shard.successor_begins);
  return std::move(shard.result);
}

void play(replayed_shard& shard, const replay_input& input, const std::vector<std::string>& child,
          const replay::options& options) {
  try {
    shard.summary = replay_shard(input, child, options);
  } catch (const cancelled&) {  // reported for all shards together
  } catch (const std::exception& error) {
    shard.setup_error = error.what();
  }
}

}  // namespace

replay_result replay_files(const std::vector<replay_input>& inputs,
                           const std::vector<std::string>& child, const replay::options& options,
                           unsigned parallel) {
  replay_result result;  // each shard's part belongs to the thread that plays it
  for (const replay_input& input : inputs) result.shards.push_back({input.name, {}, {}});
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < inputs.size() && cancellation_signal() == 0; i = next++) {
      play(result.shards[i], inputs[i], child, options);
    }
  };
  std::vector<std::jthread> threads;
  try {
    const std::size_t count = std::min<std::size_t>(parallel, inputs.size());
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    if (threads.empty()) throw;  // fewer only take longer
  }
  threads.clear();
  throw_if_cancelled();
  return result;
}

replay_result replay_files_twice(const std::vector<replay_input>& inputs,
                                 const std::vector<std::string>& child,
                                 const replay::options& options, unsigned parallel,
                                 const std::string& effects) {
  const auto play_in = [&](const std::filesystem::path& directory,
                           const replay::options& play_options) {
    std::vector<std::string> command = child;
    for (std::string& word : command) word = effect_directories::replaced(word, directory);
    return replay_files(inputs, command, play_options, parallel);
  };
  effect_directories directories;
  replay::options without_faults = options;
  without_faults.faults = {};
  const replay_result reference = play_in(directories.without_faults(), without_faults);
  if (reference.status() != exit_status::ok) {
    print_text(std::cerr, reference);
    throw command_error(reference.status(), "the run without faults failed");
  }
  const effect_lines expected =
      read_effects(effect_directories::replaced(effects, directories.without_faults()));
  replay_result result = play_in(directories.with_faults(), options);
  const std::filesystem::path left =
      effect_directories::replaced(effects, directories.with_faults());
  // A child that a fault has ended early may have left nothing.
  result.effects = compare_effects(
      expected, std::filesystem::exists(left) ? read_effects(left) : effect_lines{});
  if (!result.effects->is_same()) result.effects->kept_in = directories.keep();
  return result;
}

}  // namespace kclxx::tool

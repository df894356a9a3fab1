// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_files.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <system_error>
#include <thread>
#include <utility>

#include "tool/command_error.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/replay/effect_files.hpp"
#include "tool/replay/replay_shard.hpp"

namespace kclxx::tool {

namespace {

void play(replayed_shard& shard, const std::vector<std::string>& child,
          const replay::options& options) {
  try {
    shard.summary = replay_shard(shard.file, child, options);
  } catch (const cancelled&) {  // reported for all shards together
  } catch (const std::exception& error) {
    shard.setup_error = error.what();
  }
}

}  // namespace

replay_result replay_files(const std::vector<std::string>& files,
                           const std::vector<std::string>& child, const replay::options& options,
                           unsigned parallel) {
  replay_result result;  // each shard's part belongs to the thread that plays it
  for (const std::string& file : files) result.shards.push_back({file, {}, {}});
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < files.size() && cancellation_signal() == 0; i = next++) {
      play(result.shards[i], child, options);
    }
  };
  std::vector<std::jthread> threads;
  try {
    const std::size_t count = std::min<std::size_t>(parallel, files.size());
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  } catch (const std::system_error&) {
    if (threads.empty()) throw;  // fewer only take longer
  }
  threads.clear();
  throw_if_cancelled();
  return result;
}

replay_result replay_files_twice(const std::vector<std::string>& files,
                                 const std::vector<std::string>& child,
                                 const replay::options& options, unsigned parallel,
                                 const std::string& effects) {
  const auto play_in = [&](const std::filesystem::path& directory,
                           const replay::options& play_options) {
    std::vector<std::string> command = child;
    for (std::string& word : command) {
      word = effect_directories::replaced(std::move(word), directory);
    }
    return replay_files(files, command, play_options, parallel);
  };
  effect_directories directories;
  replay::options without_faults = options;
  without_faults.inject = {};
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

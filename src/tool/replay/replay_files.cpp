// SPDX-License-Identifier: Apache-2.0
#include "tool/replay/replay_files.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <iostream>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "tool/command.hpp"
#include "tool/process/cancellation.hpp"
#include "tool/replay/effect_files.hpp"
#include "tool/replay/replay_progress.hpp"
#include "tool/replay/replay_shard.hpp"

namespace kclxx::tool {

namespace {

class replay_of_files {
 public:
  replay_of_files(const std::vector<std::string>& files, const std::vector<std::string>& child,
                  const replay::options& options)
      : files_(files), child_(child), options_(options), progress_(files.size()) {
    for (const std::string& file : files) result_.shards.push_back({file, {}, {}});
  }

  replay_result run(unsigned parallel);

 private:
  void work();
  void play(std::size_t number);
  void watch();

  const std::vector<std::string>& files_;
  const std::vector<std::string>& child_;
  const replay::options& options_;
  std::deque<shard_progress> progress_;
  replay_result result_;  // each shard's part belongs to the thread that plays it
  std::atomic<std::size_t> next_ = 0;
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::size_t done_ = 0;
};

replay_result replay_of_files::run(unsigned parallel) {
  std::vector<std::thread> threads;
  const std::size_t count = std::min<std::size_t>(parallel, files_.size());
  try {
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    if (threads.empty()) throw;  // fewer only take longer
  }
  watch();
  for (std::thread& thread : threads) thread.join();
  throw_if_cancelled();
  return std::move(result_);
}

void replay_of_files::work() {
  for (std::size_t i = next_++; i < files_.size(); i = next_++) {
    if (cancellation_signal() == 0) play(i);
    const std::lock_guard lock(mutex_);
    ++done_;
    all_done_.notify_one();
  }
}

void replay_of_files::play(std::size_t number) {
  replayed_shard& shard = result_.shards[number];
  try {
    shard.summary = replay_shard(shard.file, child_, options_, progress_[number]);
  } catch (const cancelled&) {  // reported for all shards together
  } catch (const std::exception& error) {
    shard.setup_error = error.what();
  }
}

void replay_of_files::watch() {
  std::uint64_t total = 0;
  for (const std::string& file : files_) {
    std::error_code not_a_file;
    const auto size = std::filesystem::file_size(file, not_a_file);
    if (!not_a_file) total += size;
  }
  progress_bar bar(total);
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return done_ == files_.size(); };
  while (!all_done_.wait_for(lock, std::chrono::milliseconds(200), is_done)) {
    std::uint64_t read = 0;
    std::uint64_t records = 0;
    for (const shard_progress& progress : progress_) {
      read += progress.played_bytes.load(std::memory_order_relaxed);
      records += progress.records.load(std::memory_order_relaxed);
    }
    bar.show(read, records);
  }
}

}  // namespace

replay_result replay_files(const std::vector<std::string>& files,
                           const std::vector<std::string>& child, const replay::options& options,
                           unsigned parallel) {
  return replay_of_files(files, child, options).run(parallel);
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

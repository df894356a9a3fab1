// SPDX-License-Identifier: Apache-2.0
#include "cli/recorder.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "io/signals.hpp"
#include "transcript/header.hpp"

namespace kclxx::cli {

namespace {

using std::chrono::steady_clock;
using transcript::entry_kind;

constexpr std::size_t max_queued = std::size_t{16} << 20;
constexpr std::chrono::seconds longest_wait(5);
constexpr const char* too_slow = "the disk is too slow";

std::string existing(const std::string& directory) {
  std::filesystem::create_directories(directory);
  return directory;
}

// "2026-11-21T07:00:00.123456Z" without what is unusual in a file's name.
std::string compact(std::string time) {
  std::erase_if(time, [](char c) { return c == '-' || c == ':'; });
  return time.substr(0, time.find('.')) + "Z";
}

// The shard comes from the other side: it shall not lead out of the directory.
std::string as_file_name(std::string shard) {
  constexpr std::string_view harmless =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::replace_if(
      shard.begin(), shard.end(),
      [&](char c) { return harmless.find(c) == std::string_view::npos; }, '_');
  return shard.substr(0, 200);
}

bool is_line(entry_kind kind) {
  return kind == entry_kind::daemon_line || kind == entry_kind::child_line;
}

}  // namespace

recorder::recorder(const std::string& directory, std::vector<std::string> command)
    : started_(steady_clock::now()),
      header_{std::nullopt, transcript::format_time(std::chrono::system_clock::now()),
              std::move(command)},
      // Not with a literal in front: g++ 12 warns of that wrongly at -O3 (its bug 105329).
      suffix_(std::string(".") + compact(header_.started) + "-" + std::to_string(::getpid()) +
              ".jsonl"),
      directory_(existing(directory)),
      file_(directory_ + "/starting" + suffix_),
      writer_(file_) {
  const io::signal_block no_signals;
  thread_ = std::thread([this] { run(); });
}

recorder::~recorder() {
  finish();
  thread_.join();
}

void recorder::add(block one) {
  std::unique_lock lock(mutex_);
  if (queued_bytes_ > max_queued) {
    filled_.notify_one();
    if (!emptied_.wait_for(lock, longest_wait,
                           [&] { return has_given_up_ || queued_bytes_ <= max_queued; })) {
      give_up_locked(too_slow);
    }
  }
  if (has_given_up_) return;
  using std::chrono::microseconds;
  const auto at = std::chrono::duration_cast<microseconds>(steady_clock::now() - started_);
  queued_bytes_ += one.bytes.size();
  queue_.push_back({std::move(one), at});
}

void recorder::wake() { filled_.notify_one(); }

void recorder::give_up(const std::string& why) {
  const std::lock_guard lock(mutex_);
  give_up_locked(why);
}

void recorder::give_up_locked(const std::string& why) {
  if (std::exchange(has_given_up_, true)) return;
  queue_.clear();
  queued_bytes_ = 0;
  emptied_.notify_all();
  std::cerr << "kclxx capture: nothing more is recorded: " + why + "; the dialogue goes on\n"
            << std::flush;
}

bool recorder::is_recording() const {
  const std::lock_guard lock(mutex_);
  return !has_given_up_;
}

void recorder::finish() {
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  filled_.notify_one();
  while (!has_finished_) {
    const std::size_t before = written_;
    emptied_.wait_for(lock, longest_wait, [&] { return has_finished_ || written_ != before; });
    if (!has_finished_ && written_ == before) return give_up_locked(too_slow);
  }
}

void recorder::discard() {
  const std::lock_guard lock(mutex_);
  has_given_up_ = true;
  file_.remove();
}

void recorder::run() {
  // The dialogue goes before its recording. Not for the thread that reads the daemon's bytes: the
  // dialogue may have to wait for that one.
  ::setpriority(PRIO_PROCESS, static_cast<id_t>(::syscall(SYS_gettid)),
                ::getpriority(PRIO_PROCESS, 0) + 5);
  std::unique_lock lock(mutex_);
  for (;;) {
    filled_.wait(lock, [&] { return is_finishing_ || !queue_.empty(); });
    if (queue_.empty()) break;
    const timed_block one = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    std::string problem;
    try {
      write(one);
    } catch (const std::exception& error) {
      problem = error.what();
    }
    lock.lock();
    if (!problem.empty()) give_up_locked(problem);
    queued_bytes_ -= std::min(queued_bytes_, one.what.bytes.size());
    ++written_;
    emptied_.notify_all();
  }
  has_finished_ = true;
  emptied_.notify_all();
}

void recorder::write(const timed_block& one) {
  transcript::entry entry;
  entry.at = one.at;
  entry.kind = one.what.kind;
  entry.number = one.what.number;
  if (!is_line(entry.kind)) {
    if (!has_begun_) begin(nullptr);
    writer_.write(entry);
    return;
  }
  for (std::string_view rest = one.what.bytes; !rest.empty();) {
    const std::size_t newline = rest.find('\n');
    entry.line = rest.substr(0, newline);
    write_line(entry, newline == std::string_view::npos);
    rest.remove_prefix(std::min(rest.size(), entry.line.size() + 1));
  }
}

void recorder::write_line(transcript::entry& line, bool is_unfinished) {
  if (!has_begun_) begin(&line);
  writer_.write(line, is_unfinished);
  if (!is_name_settled_ && line.kind == entry_kind::daemon_line) {
    is_name_settled_ = true;
    const auto shard = transcript::initialized_shard(line.line);
    if (shard) file_.rename(directory_ + "/" + as_file_name(*shard) + suffix_);
  }
}

// The header waits for the first entry, which mostly is initialize and so knows the shard.
void recorder::begin(const transcript::entry* first) {
  has_begun_ = true;
  if (first != nullptr && first->kind == entry_kind::daemon_line) {
    header_.shard = transcript::initialized_shard(first->line);
  }
  writer_.write(header_);
}

}  // namespace kclxx::cli

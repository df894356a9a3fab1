// SPDX-License-Identifier: Apache-2.0
#include "tool/capture/recorder.hpp"

#include <algorithm>
#include <exception>
#include <iostream>
#include <unistd.h>
#include <utility>

#include "tool/transcript/transcript.hpp"

namespace kclxx::tool {

namespace {

using transcript::entry_kind;

/// The memory of a longer line is given back after the line.
constexpr std::size_t max_idle_memory = std::size_t{4} << 20;

/// The shard's id as a part of a file's name. It comes from outside, and must not lead out of the
/// directory.
std::string as_file_name(std::string shard) {
  constexpr std::string_view harmless =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::replace_if(
      shard.begin(), shard.end(),
      [&](char c) { return harmless.find(c) == std::string_view::npos; }, '_');
  return shard.substr(0, 200);
}

}  // namespace

recorder::recorder(const std::string& directory, const std::string& program)
    : header_{std::nullopt, transcript::format_time(std::chrono::system_clock::now()), {program}},
      directory_((make_private_directory(directory), directory)),
      // A literal in front would make g++ 12 warn at -O3, wrongly (its bug 105329).
      suffix_(std::string(".") + unique_name() + "-" + std::to_string(::getpid()) + ".jsonl"),
      file_(directory_ + "/starting" + suffix_),
      writer_(file_),
      daemon_line_{transcript::reader::default_max_line} {}

template <class Function>
void recorder::record(Function function) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  try {
    const auto since = std::chrono::steady_clock::now() - started_;
    function(std::chrono::duration_cast<time>(since));
  } catch (const std::exception& error) {
    has_ended_ = true;
    std::cerr << std::string("kclxx capture: nothing more is recorded: ") + error.what() +
                     "; the dialogue continues\n"
              << std::flush;
  }
}

void recorder::add(entry_kind line_of_side, std::string_view bytes) {
  record([&](time now) { add_bytes(line_of_side, bytes, now); });
}

void recorder::add_end(entry_kind end_of_side) {
  record([&](time now) {
    const bool is_input = end_of_side == entry_kind::end_of_input;
    const auto side = is_input ? entry_kind::daemon_line : entry_kind::child_line;
    if ((is_input ? daemon_line_ : child_line_).length > 0) end_line(side, now, false);
    write({now, end_of_side});
  });
}

void recorder::finish(entry_kind exit, int number) {
  record([&](time now) {
    transcript::entry event{now, exit};
    event.number = number;
    write(event);
    has_ended_ = true;
  });
}

void recorder::discard() {
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  file_.remove();
}

void recorder::add_bytes(entry_kind kind, std::string_view bytes, time now) {
  line& current = kind == entry_kind::daemon_line ? daemon_line_ : child_line_;
  while (!bytes.empty()) {
    if (current.length == 0) current.began = now;
    const std::size_t newline = bytes.find('\n');
    const std::string_view part = bytes.substr(0, newline);
    current.length += part.size();
    current.text += part.substr(0, current.max_kept - current.text.size());
    if (newline == std::string_view::npos) return;
    end_line(kind, now, true);
    bytes.remove_prefix(newline + 1);
  }
}

void recorder::end_line(entry_kind kind, time now, bool has_newline) {
  const bool is_daemon = kind == entry_kind::daemon_line;
  line& current = is_daemon ? daemon_line_ : child_line_;
  transcript::entry entry{is_daemon ? current.began : now, kind, current.text};
  if (current.length > current.text.size()) {
    entry.whole_length = current.length;
    entry.line = entry.line.substr(0, max_child_line);
  }
  write(entry, !has_newline);
  current.length = 0;
  current.text.clear();
  if (current.text.capacity() > max_idle_memory) std::string().swap(current.text);
}

// The header waits for the first entry, which usually is initialize and has the shard.
void recorder::write(const transcript::entry& entry, bool is_unfinished) {
  std::optional<std::string> shard;
  if (entry.kind == entry_kind::daemon_line && !std::exchange(has_seen_daemon_line_, true)) {
    shard = transcript::initialized_shard(entry.line);
  }
  if (!std::exchange(has_header_, true)) {
    header_.shard = shard;
    writer_.write(header_);
  }
  writer_.write(entry, is_unfinished);
  if (shard) file_.rename(directory_ + "/" + as_file_name(*shard) + suffix_);
}

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
#include "tool/transcript/dialogue_file.hpp"

#include <algorithm>
#include <iomanip>
#include <random>
#include <sstream>
#include <stdexcept>
#include <unistd.h>
#include <utility>

#include "tool/transcript/header.hpp"
#include "tool/transcript/reader.hpp"

namespace kclxx::cli {

namespace {

using transcript::entry_kind;

// A write of its own costs less than a copy.
constexpr std::size_t worth_writing = std::size_t{32} << 10;
constexpr std::size_t max_line = transcript::reader::default_max_line;
constexpr std::size_t max_held = std::size_t{16} << 20;

std::string existing(const std::string& directory) {
  make_directory(directory);
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

/// Containers that share the directory share process ids, too.
std::string random_hex() {
  std::ostringstream out;
  out << std::hex << std::setw(8) << std::setfill('0') << (std::random_device()() & 0xffffffffU);
  return out.str();
}

void check_length(std::size_t line) {
  if (line > max_line) throw std::length_error("a line is longer than 1 GiB");
}

}  // namespace

dialogue_file::dialogue_file(const std::string& directory, std::vector<std::string> command)
    : header_{std::nullopt, transcript::format_time(std::chrono::system_clock::now()),
              std::move(command)},
      // Not with a literal in front: g++ 12 warns of that wrongly at -O3 (its bug 105329).
      suffix_(std::string(".") + compact(header_.started) + "-" + std::to_string(::getpid()) + "-" +
              random_hex() + ".jsonl"),
      directory_(existing(directory)),
      file_(directory_ + "/starting" + suffix_),
      writer_(file_) {}

bool dialogue_file::is_in_daemon_line() const noexcept { return written_ > 0 || !rest_.empty(); }

void dialogue_file::add_daemon_bytes(time at, std::string_view bytes) {
  for (std::size_t newline = 0; (newline = bytes.find('\n')) != std::string_view::npos;) {
    if (!is_in_daemon_line()) began_ = at;
    finish_daemon_line(bytes.substr(0, newline), true);
    bytes.remove_prefix(newline + 1);
  }
  if (bytes.empty()) return;
  if (!is_in_daemon_line()) began_ = at;
  keep(bytes);
}

// Of a line that goes on.
void dialogue_file::keep(std::string_view part) {
  // Whether it will end with } is not known yet, but nearly all lines of a daemon do.
  const bool may_be_written = written_ > 0 || (rest_.empty() ? part : rest_).front() == '{';
  if (may_be_written && rest_.size() + part.size() >= worth_writing) {
    if (!rest_.empty()) write_part(std::exchange(rest_, {}));
    write_part(part);
  } else {
    rest_ += part;
  }
  check_length(written_ + rest_.size());
}

void dialogue_file::write_part(std::string_view part) {
  if (written_ > 0) {
    writer_.write_more(part);
  } else {
    if (!has_begun_) begin(nullptr);
    is_name_settled_ = true;  // no initialize is as long
    written_ = in_front_ = writer_.write_beginning({began_, entry_kind::daemon_line, part});
  }
  written_ += part.size();
  last_written_ = part.back();
}

void dialogue_file::finish_daemon_line(std::string_view end, bool has_newline) {
  if (!rest_.empty()) end = rest_ += end;
  if (written_ > 0 && has_newline && (end.empty() ? last_written_ : end.back()) == '}') {
    writer_.write_end(end);
  } else if (written_ > 0) {
    const std::string text = take_back().append(end);
    write({began_, entry_kind::daemon_line, text}, !has_newline);
  } else {
    write({began_, entry_kind::daemon_line, end}, !has_newline);
    settle_name(end);
  }
  written_ = 0;
  rest_.clear();
  write_held();
}

void dialogue_file::drop_daemon_line() {
  if (written_ > 0) static_cast<void>(take_back());
  rest_.clear();
  write_held();
}

// Of the line that is in the file.
std::string dialogue_file::take_back() {
  return file_.take_back(std::exchange(written_, 0)).substr(in_front_);
}

void dialogue_file::add_child_bytes(time at, std::string_view bytes) {
  transcript::entry line{at, entry_kind::child_line};
  for (std::size_t newline = 0; (newline = bytes.find('\n')) != std::string_view::npos;) {
    line.line = bytes.substr(0, newline);
    if (!child_text_.empty()) line.line = child_text_ += line.line;
    write_or_hold(line);
    child_text_.clear();
    bytes.remove_prefix(newline + 1);
  }
  child_text_ += bytes;
  check_length(child_text_.size());
}

void dialogue_file::add_event(const transcript::entry& one) {
  switch (one.kind) {
    case entry_kind::end_of_output:
      if (!child_text_.empty()) {
        write_or_hold({one.at, entry_kind::child_line, child_text_}, true);
        child_text_.clear();
      }
      return write_or_hold(one);
    case entry_kind::end_of_input:
      if (is_in_daemon_line()) finish_daemon_line({}, false);
      break;
    default:
      drop_daemon_line();
  }
  write(one);
}

void dialogue_file::write_or_hold(const transcript::entry& one, bool is_unfinished) {
  if (!is_in_daemon_line()) return write(one, is_unfinished);
  held_.push_back({one, std::string(one.line), is_unfinished});
  held_bytes_ += sizeof(held_entry) + one.line.size();
  if (held_bytes_ > max_held) {
    throw std::length_error("the child said more than 16 MiB while one line of the daemon came");
  }
}

void dialogue_file::write_held() {
  for (held_entry& one : held_) {
    one.what.line = one.text;
    write(one.what, one.is_unfinished);
  }
  held_.clear();
  held_bytes_ = 0;
}

void dialogue_file::write(const transcript::entry& one, bool is_unfinished) {
  if (!has_begun_) begin(&one);
  writer_.write(one, is_unfinished);
}

// The header waits for the first entry, which mostly is initialize and so knows the shard.
void dialogue_file::begin(const transcript::entry* first) {
  has_begun_ = true;
  if (first != nullptr && first->kind == entry_kind::daemon_line) {
    header_.shard = transcript::initialized_shard(first->line);
  }
  writer_.write(header_);
}

void dialogue_file::settle_name(std::string_view line) {
  if (std::exchange(is_name_settled_, true)) return;
  const auto shard = transcript::initialized_shard(line);
  if (shard) file_.rename(directory_ + "/" + as_file_name(*shard) + suffix_);
}

}  // namespace kclxx::cli

// SPDX-License-Identifier: Apache-2.0
#include "runtime/input.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>
#include <variant>

namespace kclxx::runtime {

static_assert(io::line_buffer::padding >= protocol::decoder::padding);

namespace {

constexpr std::size_t excerpt_length = 120;
constexpr int small_lines_before_release = 16;

}  // namespace

std::string excerpt(const char* line, std::size_t length) {
  std::string text;
  for (std::size_t i = 0; i < std::min(length, excerpt_length); ++i) {
    const auto byte = static_cast<unsigned char>(line[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      text += line[i];
    } else {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(byte));
      text += escaped;
    }
  }
  if (length > excerpt_length) text += "...";
  return text;
}

input::input(int fd, std::size_t max_line_length, conversation& to, logger& log)
    : fd_(fd), limit_(max_line_length), conversation_(to), log_(log), reader_(max_line_length) {}

input::state input::on_readable() {
  int error = 0;
  if (reader_.could_use_memory()) pool_.lend_line(reader_);
  const io::read_result result = reader_.read_from(fd_, error);
  deliver_lines();
  if (conversation_.status()) return state::ended;
  if (reader_.over_limit()) {
    refuse_long_line();
    return state::ended;
  }
  if (result != io::read_result::end) return state::open;
  if (error != 0) {
    log_(log_level::error, std::string("cannot read from the daemon: ") + std::strerror(error));
  }
  // A last line without its newline still counts: a file written by hand may end so.
  auto memory = take_memory();
  std::size_t length = 0;
  bool is_unfinished = reader_.unfinished(memory->line, length);
  if (is_unfinished && memory->line.data()[length - 1] == '}') {
    deliver(std::move(memory), length);
    is_unfinished = false;
  }
  conversation_.on_end_of_input(is_unfinished);
  return state::ended;
}

void input::deliver_lines() {
  while (!conversation_.is_reading_paused() && !conversation_.status()) {
    auto memory = take_memory();
    std::size_t length = 0;
    if (!reader_.next_line(memory->line, length)) {
      read_ahead(std::move(memory));
      return;
    }
    note_size(length);
    if (length > 0) deliver(std::move(memory), length);
  }
}

std::shared_ptr<batch_memory> input::take_memory() {
  return arriving_ ? std::move(arriving_) : pool_.take();
}

/// The daemon writes 8 KiB at a time: what is there of a large line is decoded while it writes on.
void input::read_ahead(std::shared_ptr<batch_memory> memory) {
  const std::span<char> line = reader_.arriving();
  // No record ends before that, so the excerpt is taken from a line that nothing has changed.
  if (line.size() < excerpt_length) return;
  keep_beginning(line.data(), line.size());
  decoder_.read_ahead(line.data(), line.size(), memory->records, memory->arena);
  arriving_ = std::move(memory);
}

/// Decoding rewrites the line; what an error shows of it must be kept before.
void input::keep_beginning(const char* line, std::size_t length) {
  if (beginning_.empty()) beginning_.assign(line, std::min(length, excerpt_length));
}

void input::deliver(std::shared_ptr<batch_memory> memory, std::size_t length) {
  keep_beginning(memory->line.data(), length);
  bool replaced_invalid_utf8 = false;
  auto decoded = decoder_.decode(memory->line.data(), length, memory->records, memory->arena,
                                 replaced_invalid_utf8);
  if (auto* error = std::get_if<protocol::decode_error>(&decoded)) {
    conversation_.on_bad_line(
        "bad line from the daemon: " + (error->field.empty() ? "it" : error->field) + " " +
        error->what + "; the line has " + std::to_string(length) +
        " bytes and begins: " + excerpt(beginning_.data(), length));
    return;
  }
  beginning_.clear();
  if (replaced_invalid_utf8 && !std::exchange(has_said_utf8_, true)) {
    log_(log_level::warning,
         "a line from the daemon has bytes that are not UTF-8; they stand as U+FFFD. Start the "
         "daemon with -Dfile.encoding=UTF-8. Said once.");
  }
  auto& message = std::get<protocol::message>(decoded);
  record_batch batch;
  if (const auto* records = std::get_if<protocol::process_records>(&message.body)) {
    const std::span<const record> views(memory->records);
    batch = record_batch(views, std::move(memory), records->millis_behind_latest);
  }
  conversation_.on_message(std::move(message), std::move(batch));
}

void input::refuse_long_line() {
  io::line_buffer line;
  std::size_t length = 0;
  reader_.unfinished(line, length);
  keep_beginning(line.data(), length);
  conversation_.on_bad_line(
      "bad line from the daemon: it is longer than the limit of " + std::to_string(limit_) +
      " bytes (run_options::max_line_length) and begins: " + excerpt(beginning_.data(), length));
}

void input::note_size(std::size_t length) {
  last_line_ = std::chrono::steady_clock::now();
  if (length > batch_memory::large) {
    small_lines_ = 0;
    if (!std::exchange(holds_large_, true)) pool_.keep_large();
  } else if (holds_large_ && ++small_lines_ >= small_lines_before_release) {
    release();
  }
}

void input::on_idle() {
  if (holds_large_ && std::chrono::steady_clock::now() - last_line_ >= idle_time) release();
}

void input::release() {
  holds_large_ = false;
  small_lines_ = 0;
  decoder_.release_memory();
  reader_.release_memory();
  pool_.release_large();
}

}  // namespace kclxx::runtime

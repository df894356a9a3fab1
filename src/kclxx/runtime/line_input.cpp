// SPDX-License-Identifier: Apache-2.0
#include "runtime/line_input.hpp"

#include <utility>

namespace kclxx::runtime {

using driver::batch_memory;

namespace {

constexpr int small_lines_before_release = 16;

}  // namespace

line_input::line_input(int fd, std::size_t max_line_length, line_sink& sink)
    : fd_(fd), limit_(max_line_length), sink_(sink), reader_(max_line_length) {}

line_input::state line_input::on_readable() {
  int error = 0;
  if (reader_.could_use_memory()) pool_.lend_line(reader_);
  const io::read_result result = reader_.read_from(fd_, error);
  if (on_resumed() == state::ended) return state::ended;
  // Lines that are held back come first; then the end is read again.
  return result == io::read_result::end && !is_held_back_ ? finish(error) : state::open;
}

line_input::state line_input::on_resumed() {
  deliver_lines();
  if (sink_.is_over()) return state::ended;
  if (!reader_.over_limit()) return state::open;
  io::line_buffer line;
  std::size_t length = 0;
  reader_.unfinished(line, length);
  sink_.on_line(decoder_.too_long(line.data(), length, limit_));
  return state::ended;
}

/// A last line without its newline still counts if it is a message: a file written by hand may end
/// so. Anything else broke off.
line_input::state line_input::finish(int error) {
  auto memory = take_memory();
  std::size_t length = 0;
  bool is_unfinished = reader_.unfinished(memory->line, length);
  if (is_unfinished && error == 0) {
    auto line = decoder_.decode(std::move(memory), length);
    is_unfinished = std::holds_alternative<driver::line_decoder::bad_line>(line);
    if (!is_unfinished) sink_.on_line(std::move(line));
  }
  sink_.on_end_of_input(is_unfinished, error);
  return state::ended;
}

void line_input::deliver_lines() {
  // In lockstep nothing follows a line: then no memory is taken for a next one.
  for (is_held_back_ = false; reader_.has_unread();) {
    is_held_back_ = sink_.is_full();
    if (is_held_back_) return;
    auto memory = take_memory();
    std::size_t length = 0;
    if (!reader_.next_line(memory->line, length)) {
      if (decoder_.read_ahead(reader_.arriving(), *memory)) arriving_ = std::move(memory);
      return;
    }
    note_size(length);
    deliver(std::move(memory), length);
  }
}

std::shared_ptr<batch_memory> line_input::take_memory() {
  return arriving_ ? std::move(arriving_) : pool_.take();
}

void line_input::deliver(std::shared_ptr<batch_memory> memory, std::size_t length) {
  sink_.on_line(decoder_.decode(std::move(memory), length));
}

void line_input::note_size(std::size_t length) {
  last_line_ = std::chrono::steady_clock::now();
  if (length > batch_memory::large) {
    small_lines_ = 0;
    if (!std::exchange(holds_large_, true)) pool_.keep_large();
  } else if (holds_large_ && ++small_lines_ >= small_lines_before_release) {
    release();
  }
}

void line_input::on_idle() {
  if (holds_large_ && std::chrono::steady_clock::now() - last_line_ >= idle_time) release();
}

void line_input::release() {
  holds_large_ = false;
  small_lines_ = 0;
  decoder_.release_memory();
  reader_.release_memory();
  pool_.release_large();
}

}  // namespace kclxx::runtime

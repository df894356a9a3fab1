// SPDX-License-Identifier: Apache-2.0
#include "runtime/line_input.hpp"

#include <utility>

namespace kclxx::runtime {

using driver::batch_memory;
using driver::line_decoder;

line_input::line_input(int fd, std::size_t max_line_length)
    : fd_(fd), limit_(max_line_length), reader_(max_line_length) {}

void line_input::read() {
  if (reader_.could_use_memory()) pool_.lend_line(reader_);
  is_at_end_ = reader_.read_from(fd_, error_) == io::read_result::end;
  may_have_line_ = true;
}

std::optional<line_decoder::outcome> line_input::next() {
  if (has_ended_) return std::nullopt;
  // In lockstep nothing follows a line, so no memory is taken for a next line.
  if (reader_.has_unread()) {
    auto memory = take_memory();
    std::size_t length = 0;
    if (reader_.next_line(memory->line, length)) {
      note_size(length);
      may_have_line_ = reader_.has_unread() || is_at_end_;
      return decoder_.decode(std::move(memory), length);
    }
    if (decoder_.read_ahead(reader_.arriving(), *memory)) arriving_ = std::move(memory);
  }
  if (reader_.over_limit()) {
    has_ended_ = true;
    io::line_buffer line;
    std::size_t length = 0;
    reader_.unfinished(line, length);
    return decoder_.too_long(line.data(), length, limit_);
  }
  if (is_at_end_) return last();
  may_have_line_ = false;
  return std::nullopt;
}

/// A last line without its newline counts if it is a message, since a file that is written by hand
/// may end so. If it is none, the input broke off.
line_decoder::outcome line_input::last() {
  auto memory = take_memory();
  std::size_t length = 0;
  if (reader_.unfinished(memory->line, length)) {
    is_in_line_ = true;
    auto line = decoder_.decode(std::move(memory), length);
    if (error_ == 0 && !std::holds_alternative<line_decoder::bad_line>(line)) {
      is_in_line_ = false;
      return line;
    }
  }
  has_ended_ = true;
  return line_decoder::end{is_in_line_, error_};
}

std::shared_ptr<batch_memory> line_input::take_memory() {
  return arriving_ ? std::move(arriving_) : pool_.take();
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
  reader_.release_memory();
  pool_.release_large();
}

}  // namespace kclxx::runtime

// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_dialogue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "tool/process/interruption.hpp"
#include "tool/process/poll.hpp"

namespace kclxx::cli {

namespace {

constexpr std::size_t read_size = std::size_t{64} << 10;
constexpr std::string_view newline = "\n";

// A handler and not SIG_IGN, which a child would inherit.
void survive_broken_pipes() {
  static const bool once = [] {
    struct sigaction nothing {};
    nothing.sa_handler = [](int) {};
    nothing.sa_flags = SA_RESTART;
    return ::sigaction(SIGPIPE, &nothing, nullptr) == 0;
  }();
  static_cast<void>(once);
}

}  // namespace

child_dialogue::child_dialogue(const std::vector<std::string>& command,
                               child_process::error_output error)
    : process_(command, error) {
  survive_broken_pipes();
  set_non_blocking(process_.input);
  set_non_blocking(process_.output);
}

void child_dialogue::queue(piece one) {
  if (!process_.input.is_open() || one.text().empty()) return;
  unsent_copies_ += one.own.size();
  unsent_.push_back(std::move(one));
  say_sent_ = false;
}

void child_dialogue::send(std::string_view line) {
  queue({{}, line});
  queue({{}, newline});
}

void child_dialogue::send_copy(std::string line) {
  line += newline;
  queue({std::move(line), {}});
}

void child_dialogue::send_bytes(std::string bytes) { queue({std::move(bytes), {}}); }

void child_dialogue::close_input() noexcept {
  drop_unsent();
  process_.input.close();
}

void child_dialogue::drop_unsent() {
  unsent_.clear();
  first_done_ = unsent_copies_ = 0;
  say_sent_ = false;
}

child_dialogue::event child_dialogue::next(clock::time_point deadline) {
  for (;;) {
    if (!unsent_.empty()) write_some();
    // First: the time of a callback begins here.
    if (std::exchange(say_sent_, false)) return {event_kind::sent};
    if (std::exchange(say_broken_, false)) return {event_kind::input_broken};
    if (may_read()) {
      if (auto line = take_line()) return *line;
      if (output_ended_) {
        if (auto rest = take_rest()) return *rest;
        return {event_kind::end_of_output};
      }
    }
    if (!wait(deadline, true)) return {event_kind::timed_out};
  }
}

child_dialogue::event child_dialogue::next_sent(clock::time_point deadline) {
  while (!unsent_.empty()) {
    write_some();
    if (!unsent_.empty() && !wait(deadline, false)) return {event_kind::timed_out};
  }
  say_sent_ = false;
  return {std::exchange(say_broken_, false) ? event_kind::input_broken : event_kind::sent};
}

bool child_dialogue::may_read() const noexcept { return unsent_copies_ <= max_unsent; }

// True when there is something to do.
bool child_dialogue::wait(clock::time_point deadline, bool reads) {
  std::array<pollfd, 3> ends{};
  // poll() passes over negative descriptors.
  reads = reads && may_read() && !output_ended_;
  ends[0] = {reads ? process_.output.get() : -1, POLLIN, 0};
  ends[1] = {unsent_.empty() ? -1 : process_.input.get(), POLLOUT, 0};
  ends[2] = {interruption_descriptor(), POLLIN, 0};
  if (!poll_until(ends, deadline)) return false;
  throw_if_interrupted();
  if (ends[0].revents != 0) read_some();
  return true;
}

void child_dialogue::write_some() {
  std::array<iovec, 16> pieces{};
  while (!unsent_.empty()) {
    const std::size_t count = std::min(unsent_.size(), pieces.size());
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view text = unsent_[i].text();
      if (i == 0) text.remove_prefix(first_done_);
      pieces[i] = {const_cast<char*>(text.data()), text.size()};
    }
    const ssize_t n = ::writev(process_.input.get(), pieces.data(), static_cast<int>(count));
    if (n == -1) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      close_input();  // EPIPE
      say_broken_ = true;
      return;
    }
    first_done_ += static_cast<std::size_t>(n);
    while (!unsent_.empty() && first_done_ >= unsent_.front().text().size()) {
      first_done_ -= unsent_.front().text().size();
      unsent_copies_ -= unsent_.front().own.size();
      unsent_.pop_front();
    }
  }
  say_sent_ = true;
}

void child_dialogue::read_some() {
  std::copy(at(begin_), at(end_), buffer_.begin());
  end_ -= begin_;
  scanned_ -= begin_;
  begin_ = 0;
  if (buffer_.size() < end_ + read_size) buffer_.resize(end_ + read_size);
  ssize_t n = 0;
  do {
    n = ::read(process_.output.get(), buffer_.data() + end_, read_size);
  } while (n == -1 && errno == EINTR);
  if (n == 0 || (n == -1 && errno != EAGAIN)) output_ended_ = true;
  end_ += static_cast<std::size_t>(std::max<ssize_t>(n, 0));
}

std::vector<char>::iterator child_dialogue::at(std::size_t offset) {
  return buffer_.begin() + static_cast<std::ptrdiff_t>(offset);
}

std::optional<child_dialogue::event> child_dialogue::take_line() {
  const auto newline_at = std::find(at(scanned_), at(end_), '\n');
  if (newline_at != at(end_)) {
    const auto end = static_cast<std::size_t>(newline_at - buffer_.begin());
    const std::string_view line(buffer_.data() + begin_, end - begin_);
    begin_ = scanned_ = end + 1;
    return event{event_kind::line, line, line.size() + std::exchange(dropped_, 0)};
  }
  if (end_ - begin_ > max_line) {
    dropped_ += end_ - begin_ - max_line;
    end_ = begin_ + max_line;
  }
  scanned_ = end_;
  return std::nullopt;
}

// The daemon's reader takes what stands before the end for a line, too.
std::optional<child_dialogue::event> child_dialogue::take_rest() {
  if (begin_ == end_) return std::nullopt;
  const std::string_view line(buffer_.data() + begin_, end_ - begin_);
  begin_ = scanned_ = end_;
  return event{event_kind::line, line, line.size() + std::exchange(dropped_, 0)};
}

}  // namespace kclxx::cli

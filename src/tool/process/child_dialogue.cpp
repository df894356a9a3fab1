// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_dialogue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

constexpr std::size_t read_size = std::size_t{64} << 10;
constexpr std::string_view newline = "\n";
constexpr int pieces_in_pipe = 16;
// As many as can be ready at once: those of the four descriptors.
constexpr int most_handlers_when_late = 4;

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

child_dialogue::child_dialogue(const std::vector<std::string>& command, error_handler on_error)
    : process_(command, child_process::error_output::piped, child_process::process_group::own),
      on_error_(std::move(on_error)) {
  survive_broken_pipes();
  input_.assign(process_.input.release());
  output_.assign(process_.output.release());
  error_.assign(process_.error.release());
  read_error();
  ended_.assign(process_.ended().release());
  input_.native_non_blocking(true);
  output_.native_non_blocking(true);
}

// Cancelled: what the child writes to stderr until it leaves is for its user.
child_dialogue::~child_dialogue() {
  if (cancellation_signal() == 0) return;
  close_input();
  close_output();
  process_.killed_at = clock::now() + child_process::grace_time;
  while (error_.is_open() && loop_.context().run_one_until(*process_.killed_at) > 0) {
  }
}

void child_dialogue::queue(std::string_view text, std::string_view end) {
  if (!input_.is_open()) return;
  unsent_ = {text, end};
  is_sent_ = false;
}

void child_dialogue::send(std::string_view line) { queue(line, newline); }

void child_dialogue::send_bytes(std::string bytes) {
  own_ = std::move(bytes);
  queue(own_, {});
}

void child_dialogue::kill() noexcept {
  was_killed_ = true;
  process_.kill(SIGKILL);
}

void child_dialogue::close_input() noexcept {
  unsent_ = {};
  is_sent_ = false;
  close(input_);
}

void child_dialogue::close(stream& one) noexcept {
  boost::system::error_code ignored;
  one.close(ignored);
}

bool child_dialogue::is_all_read() noexcept {
  if (!input_.is_open()) return true;
  int left = 0;
  return !is_sending() && (::ioctl(input_.native_handle(), FIONREAD, &left) == -1 || left == 0);
}

child_dialogue::event child_dialogue::next(clock::time_point deadline, output child_lines) {
  int late_handlers = 0;  // a child that floods stderr has a deadline, too
  for (;;) {
    write_some();
    // First: the time of a callback begins here.
    if (std::exchange(is_sent_, false)) return {event_kind::sent};
    if (std::exchange(is_broken_, false)) return {event_kind::input_broken};
    const bool reads = child_lines == output::is_read;
    if (reads) {
      if (auto line = take_line()) return *line;
      if (!output_.is_open()) return {event_kind::end_of_output};
    }
    await_readiness(reads);
    if (clock::now() >= deadline) ++late_handlers;
    if (late_handlers > most_handlers_when_late || !loop_.run_one(deadline)) {
      return {event_kind::timed_out, lines_.rest()};
    }
  }
}

void child_dialogue::await_readiness(bool reads) {
  using boost::system::error_code;
  if (is_sending() && !std::exchange(awaits_input_, true)) {
    input_.async_wait(stream::wait_write, [this](error_code) { awaits_input_ = false; });
  }
  if (reads && !std::exchange(awaits_output_, true)) {
    output_.async_wait(stream::wait_read, [this](error_code error) {
      awaits_output_ = false;
      if (!error) read_some();
    });
  }
}

std::optional<child_exit> child_dialogue::wait_exit(clock::time_point deadline) {
  while (error_.is_open() && !was_killed_) {
    if (clock::now() >= deadline || !loop_.run_one(deadline)) return std::nullopt;
  }
  if (!ended_.is_open()) return process_.wait();
  if (!std::exchange(awaits_end_, true)) {
    ended_.async_wait(stream::wait_read, [this](boost::system::error_code error) {
      if (!error) ended_.close();
    });
  }
  while (ended_.is_open()) {
    if (!loop_.run_one(deadline)) return std::nullopt;
  }
  // What is in the pipe; somebody else may hold it open.
  for (int left = pieces_in_pipe; left > 0 && error_.is_open() && loop_.run_one({}); --left) {
  }
  return process_.wait();
}

void child_dialogue::write_some() {
  while (is_sending() && !awaits_input_) {
    std::array<iovec, 2> parts{};
    std::transform(unsent_.begin(), unsent_.end(), parts.begin(), [](std::string_view text) {
      return iovec{const_cast<char*>(text.data()), text.size()};
    });
    const ssize_t n = ::writev(input_.native_handle(), parts.data(), 2);
    if (n == -1) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      close_input();  // EPIPE
      is_broken_ = true;
      return;
    }
    auto written = static_cast<std::size_t>(n);
    for (std::string_view& text : unsent_) {
      const std::size_t of_this = std::min(written, text.size());
      text.remove_prefix(of_this);
      written -= of_this;
    }
    is_sent_ = !is_sending();
  }
}

void child_dialogue::read_some() {
  read_at_ = clock::now();
  char* const target = lines_.prepare(read_size);
  ssize_t n = 0;
  do {
    n = ::read(output_.native_handle(), target, read_size);
  } while (n == -1 && errno == EINTR);
  if (n > 0) {
    lines_.commit(static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EAGAIN) {
    close_output();
  }
}

void child_dialogue::read_error() {
  error_.async_read_some(boost::asio::buffer(error_chunk_),
                         [this](boost::system::error_code error, std::size_t size) {
                           if (error == boost::asio::error::operation_aborted) return;
                           if (error) return close_error();
                           on_error_({error_chunk_.data(), size});
                           read_error();
                         });
}

// As the daemon's reader, takes text before the end of the output for a line, too.
std::optional<child_dialogue::event> child_dialogue::take_line() {
  std::string_view line;
  if (!lines_.next(line)) {
    dropped_ += lines_.cut_rest(max_line);
    if (output_.is_open() || lines_.rest().empty()) return std::nullopt;
    line = lines_.take_rest();
  }
  return event{event_kind::line, line, line.size() + std::exchange(dropped_, 0), read_at_};
}

}  // namespace kclxx::tool

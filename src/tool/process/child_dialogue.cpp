// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_dialogue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

namespace kclxx::tool {

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
    : process_(command, error, child_process::process_group::own) {
  survive_broken_pipes();
  input_.assign(process_.input.release());
  output_.assign(process_.output.release());
  ended_.assign(process_.ended().release());
  input_.native_non_blocking(true);
  output_.native_non_blocking(true);
}

void child_dialogue::queue(chunk bytes) {
  if (!input_.is_open() || bytes.text().empty()) return;
  unsent_copies_ += bytes.own.size();
  unsent_.push_back(std::move(bytes));
  is_sent_ = false;
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
  boost::system::error_code ignored;
  input_.close(ignored);
}

void child_dialogue::close_output() noexcept {
  boost::system::error_code ignored;
  output_.close(ignored);
}

void child_dialogue::drop_unsent() {
  unsent_.clear();
  first_done_ = unsent_copies_ = 0;
  is_sent_ = false;
}

void child_dialogue::wake() {
  boost::asio::post(loop_.context(), [this] { is_woken_ = true; });
}

child_dialogue::event child_dialogue::next(clock::time_point deadline, output how) {
  for (;;) {
    write_some();
    // First: the time of a callback begins here.
    if (std::exchange(is_sent_, false)) return {event_kind::sent};
    if (std::exchange(is_broken_, false)) return {event_kind::input_broken};
    if (std::exchange(is_woken_, false)) return {event_kind::woken};
    const bool reads = how == output::is_read && may_read();
    if (reads) {
      if (auto line = take_line()) return *line;
      if (!output_.is_open()) return {event_kind::end_of_output};
    }
    await_readiness(reads);
    if (!loop_.run_one(deadline)) return {event_kind::timed_out};
  }
}

void child_dialogue::await_readiness(bool reads) {
  using boost::system::error_code;
  if (!unsent_.empty() && !std::exchange(awaits_input_, true)) {
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
  if (!ended_.is_open()) return process_.wait();
  ended_.async_wait(stream::wait_read, [this](boost::system::error_code error) {
    if (!error) ended_.close();
  });
  while (ended_.is_open()) {
    if (!loop_.run_one(deadline)) return std::nullopt;
  }
  return process_.wait();
}

void child_dialogue::write_some() {
  std::array<iovec, 16> parts{};
  while (!unsent_.empty() && !awaits_input_) {
    const std::size_t count = std::min(unsent_.size(), parts.size());
    for (std::size_t i = 0; i < count; ++i) {
      std::string_view text = unsent_[i].text();
      if (i == 0) text.remove_prefix(first_done_);
      parts[i] = {const_cast<char*>(text.data()), text.size()};
    }
    const ssize_t n = ::writev(input_.native_handle(), parts.data(), static_cast<int>(count));
    if (n == -1) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      close_input();  // EPIPE
      is_broken_ = true;
      return;
    }
    first_done_ += static_cast<std::size_t>(n);
    while (!unsent_.empty() && first_done_ >= unsent_.front().text().size()) {
      first_done_ -= unsent_.front().text().size();
      unsent_copies_ -= unsent_.front().own.size();
      unsent_.pop_front();
    }
    is_sent_ = unsent_.empty();
  }
}

void child_dialogue::read_some() {
  read_at_ = clock::now();
  char* const to = lines_.prepare(read_size);
  ssize_t n = 0;
  do {
    n = ::read(output_.native_handle(), to, read_size);
  } while (n == -1 && errno == EINTR);
  if (n > 0) {
    lines_.commit(static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EAGAIN) {
    close_output();
  }
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

// SPDX-License-Identifier: Apache-2.0
#include "tool/process/child_dialogue.hpp"

#include <cerrno>
#include <csignal>
#include <sys/ioctl.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "io/lines.hpp"
#include "tool/process/cancellation.hpp"

namespace kclxx::tool {

namespace {

constexpr std::size_t read_size = std::size_t{64} << 10;
constexpr std::size_t kept_of_stderr = 2000;
constexpr std::size_t max_error_line = std::size_t{1} << 20;
constexpr int max_reads_of_full_pipe = 16;
// Each of the four descriptors can have a handler that is ready at the deadline.
constexpr int max_handlers_after_deadline = 4;

// Sets a handler and not SIG_IGN, which a child would inherit.
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

child_dialogue::child_dialogue(const std::vector<std::string>& command, error_output errors)
    : process_(command, child_process::error_output::piped, child_process::process_group::own),
      passes_errors_on_(errors == error_output::passed_on) {
  survive_broken_pipes();
  input_.assign(process_.input.release());
  output_.assign(process_.output.release());
  error_.assign(process_.error.release());
  read_error();
  ended_.assign(process_.ended().release());
  input_.native_non_blocking(true);
  output_.native_non_blocking(true);
}

child_dialogue::~child_dialogue() {
  if (cancellation_signal() != 0) {  // the user wants to see why the child does not leave
    close_input();
    close(output_);
    process_.killed_at = clock::now() + child_process::grace_time;
    while (error_.is_open() && loop_.context().run_one_until(*process_.killed_at) > 0) {
    }
  }
  if (passes_errors_on_) pass_on_error(error_text_.size());
}

void child_dialogue::send(std::string_view text, std::string_view end) {
  must_report_broken_ = !input_.is_open();
  if (must_report_broken_) return;
  queued_text_.assign(text).append(end);
  written_bytes_ = 0;
}

void child_dialogue::kill(int signal) noexcept {
  was_killed_ = was_killed_ || signal == SIGKILL;
  process_.kill(signal);
}

void child_dialogue::close_input() noexcept {
  queued_text_.clear();
  must_report_sent_ = false;
  close(input_);
}

void child_dialogue::abandon() noexcept {
  close_input();
  close(output_);
  close(error_);
}

void child_dialogue::close(stream& pipe) noexcept {
  boost::system::error_code ignored;
  pipe.close(ignored);
}

bool child_dialogue::is_all_read() {
  if (!input_.is_open()) return true;
  int unread_bytes = 0;
  return !is_sending() &&
         (::ioctl(input_.native_handle(), FIONREAD, &unread_bytes) == -1 || unread_bytes == 0);
}

child_dialogue::event child_dialogue::next(clock::time_point deadline, output child_lines) {
  int late_handlers = 0;  // their number is limited, so that a flood of stderr ends at the deadline
  for (;;) {
    write_some();
    // Before any line is taken: the time of a callback begins when its line is sent.
    if (std::exchange(must_report_sent_, false)) return {event_kind::sent};
    if (std::exchange(must_report_broken_, false)) return {event_kind::input_broken};
    const bool reads = child_lines == output::is_read;
    if (reads) {
      if (auto line = take_line()) return *line;
      if (!output_.is_open()) return {event_kind::end_of_output};
    }
    await_readiness(reads);
    if (clock::now() >= deadline) ++late_handlers;
    if (late_handlers > max_handlers_after_deadline || !loop_.run_one(deadline)) {
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
  // Reads what is in the pipe. Another process may hold it open, and write without end.
  for (int reads = 0; reads < max_reads_of_full_pipe && error_.is_open() && loop_.run_one({});
       ++reads) {
  }
  return process_.wait();
}

void child_dialogue::write_some() {
  while (is_sending() && !awaits_input_) {
    const std::string_view unwritten = std::string_view(queued_text_).substr(written_bytes_);
    const ssize_t n = ::write(input_.native_handle(), unwritten.data(), unwritten.size());
    if (n == -1) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return;
      close_input();  // EPIPE
      must_report_broken_ = true;
      return;
    }
    written_bytes_ += static_cast<std::size_t>(n);
    must_report_sent_ = !is_sending();
  }
}

void child_dialogue::read_some() {
  last_read_ = clock::now();
  char* const target = lines_.prepare(read_size);
  ssize_t n = 0;
  do {
    n = ::read(output_.native_handle(), target, read_size);
  } while (n == -1 && errno == EINTR);
  if (n > 0) {
    lines_.commit(static_cast<std::size_t>(n));
  } else if (n == 0 || errno != EAGAIN) {
    close(output_);
  }
}

void child_dialogue::read_error() {
  error_.async_read_some(boost::asio::buffer(error_chunk_),
                         [this](boost::system::error_code error, std::size_t size) {
                           if (error == boost::asio::error::operation_aborted) return;
                           if (error) return close(error_);
                           take_error({error_chunk_.data(), size});
                           read_error();
                         });
}

void child_dialogue::take_error(std::string_view text) {
  error_text_.append(text);
  const std::size_t size = error_text_.size();
  if (passes_errors_on_) {
    pass_on_error(size < max_error_line ? error_text_.rfind('\n') + 1 : size);
  } else if (size > 2 * kept_of_stderr) {
    error_text_.erase(0, size - kept_of_stderr);
  }
}

void child_dialogue::pass_on_error(std::size_t size) {
  const std::error_code ignored = io::write_all(STDERR_FILENO, {error_text_.data(), size});
  static_cast<void>(ignored);
  error_text_.erase(0, size);
}

std::string child_dialogue::error_text() {
  while (loop_.run_one({})) {
  }
  if (error_text_.size() <= kept_of_stderr) return error_text_;
  // The text begins with a whole line, if it has one.
  std::string text = error_text_.substr(error_text_.size() - kept_of_stderr);
  const std::size_t line = text.find('\n');
  return line + 1 < text.size() ? text.substr(line + 1) : text;
}

// Takes text before the end of the output for a line, too, as the daemon's reader does.
std::optional<child_dialogue::event> child_dialogue::take_line() {
  std::string_view line;
  if (!lines_.next(line)) {
    lines_.cut_rest(max_line);
    if (output_.is_open() || lines_.rest().empty()) return std::nullopt;
    line = lines_.take_rest();
  }
  return event{event_kind::line, line, last_read_};
}

}  // namespace kclxx::tool

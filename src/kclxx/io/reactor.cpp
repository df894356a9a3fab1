// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#include <fcntl.h>
#include <poll.h>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace kclxx::io {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

struct reactor::state {
  state(int input, bool input_is_file, std::size_t count, handlers handler)
      : on(std::move(handler)),
        fd(input),
        is_file(input_is_file),
        work(context.get_executor()),
        descriptor(context) {
    for (std::size_t i = 0; i < count; ++i) timers.emplace_back(context);
  }

  // Asio makes a descriptor non-blocking for its first wait, and with it everything that shares the
  // description: a terminal's shell, a socket's other direction. Here a read follows only a
  // completed wait; so once Asio believes it done, the mode is put back for good.
  void take_in_blocking_mode() {
    if (descriptor.is_open()) return;
    const int flags = ::fcntl(fd, F_GETFL);
    descriptor.assign(fd);
    boost::system::error_code ignored;
    descriptor.native_non_blocking(true, ignored);
    ::fcntl(fd, F_SETFL, flags);
  }

  void next() {
    if (is_paused || is_next_posted) return;
    is_next_posted = true;
    const auto read = [this](bool is_canceled) {
      is_next_posted = false;
      if (is_paused) return;
      // A wait that was canceled may have kept a newer one from being begun.
      if (!is_canceled) on.readable();
      next();
    };
    if (is_file) {
      asio::post(context, [read] { read(false); });
    } else {
      take_in_blocking_mode();
      descriptor.async_wait(stream_descriptor::wait_read,
                            [read](auto error) { read(error == asio::error::operation_aborted); });
    }
  }

  // A daemon that dies while nothing is read must be noticed all the same.
  void watch_hang_up() {
    if (is_file || is_watching) return;
    is_watching = true;
    take_in_blocking_mode();
    descriptor.async_wait(stream_descriptor::wait_error, [this](auto error) {
      is_watching = false;
      if (!is_paused || is_left) return;
      if (error == asio::error::operation_aborted) return watch_hang_up();  // by an older leaving
      if (error) return;
      pollfd look{fd, 0, 0};
      if (::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0) {
        on.hung_up();
      } else {
        watch_hang_up();
      }
    });
  }

  handlers on;
  int fd;
  bool is_file;
  bool is_paused = true;
  bool is_next_posted = false;
  bool is_watching = false;
  bool is_left = false;  // another thread reads
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work;
  stream_descriptor descriptor;
  std::vector<asio::steady_timer> timers;
};

reactor::reactor(int input, bool is_file, std::size_t timers, handlers on)
    : state_(std::make_unique<state>(input, is_file, timers, std::move(on))) {}

reactor::~reactor() {
  if (!state_->is_file) state_->descriptor.release();
}

void reactor::run() { state_->context.run(); }

void reactor::stop() { state_->context.stop(); }

void reactor::arm(std::size_t which, std::chrono::milliseconds after) {
  asio::post(state_->context, [s = state_.get(), which, after] {
    s->timers[which].expires_after(after);
    s->timers[which].async_wait([s, which](auto error) {
      if (!error) s->on.timer(which);
    });
  });
}

void reactor::pause() {
  state_->is_paused = true;
  state_->watch_hang_up();
}

void reactor::leave_input() {
  state_->is_paused = state_->is_left = true;
  // Or each arrival of input would wake this thread too.
  if (!state_->is_file) state_->descriptor.release();
}

void reactor::resume() {
  asio::post(state_->context, [s = state_.get()] {
    s->is_paused = s->is_left = false;
    s->on.resumed();
    s->next();
  });
}

}  // namespace kclxx::io

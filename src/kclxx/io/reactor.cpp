// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#include <fcntl.h>
#include <optional>
#include <poll.h>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "io/event_loop.hpp"
#include "io/input_poll.hpp"

namespace kclxx::io {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

struct reactor::state : std::enable_shared_from_this<state> {
  state(int input, bool input_is_file, handlers handler, event_loop* shared)
      : on(std::move(handler)),
        fd(input),
        is_file(input_is_file),
        own(shared == nullptr ? std::make_unique<event_loop>() : nullptr),
        context(own ? own->context : shared->context),
        descriptor(context) {
    if (own) work.emplace(context.get_executor());
  }

  /// What waits on a shared loop may outlive the reactor; its own loop ends before.
  std::shared_ptr<state> self() {
    return own ? std::shared_ptr<state>(std::shared_ptr<state>(), this) : shared_from_this();
  }

  template <class Function>
  void post(Function function) {
    asio::post(context, [self = self(), function] {
      if (!self->has_left_loop) function(*self);
    });
  }

  // Asio makes a descriptor non-blocking for its first wait, and with it everything that shares the
  // description: a terminal's shell, a socket's other direction. Here a read follows only a
  // look that found input; so once Asio believes it done, the mode is put back for good.
  void take_in_blocking_mode() {
    if (descriptor.is_open()) return;
    const int flags = ::fcntl(fd, F_GETFL);
    descriptor.assign(fd);
    boost::system::error_code ignored;
    descriptor.native_non_blocking(true, ignored);
    ::fcntl(fd, F_SETFL, flags);
  }

  void read(bool is_canceled) {
    is_next_posted = false;
    if (is_paused) return;
    // A wait that was canceled may have kept a newer one from being begun.
    if (is_file || (!is_canceled && has_input(fd))) on.readable();
    next();
  }

  void next() {
    if (is_paused || is_next_posted) return;
    is_next_posted = true;
    if (is_file) {
      post([](state& self) { self.read(false); });
    } else {
      take_in_blocking_mode();
      descriptor.async_wait(stream_descriptor::wait_read, [self = self()](auto error) {
        if (!self->has_left_loop) self->read(error == asio::error::operation_aborted);
      });
    }
  }

  // A daemon that dies while nothing is read must be noticed all the same.
  void watch_hang_up() {
    if (is_file || is_watching) return;
    is_watching = true;
    take_in_blocking_mode();
    descriptor.async_wait(stream_descriptor::wait_error, [self = self()](auto error) {
      if (self->has_left_loop) return;
      self->is_watching = false;
      // Aborted by an older leaving.
      self->look_for_hang_up(error == asio::error::operation_aborted, bool(error));
    });
  }

  void look_for_hang_up(bool is_canceled, bool has_failed) {
    if (!is_paused || is_left) return;
    if (is_canceled) return watch_hang_up();
    if (has_failed) return;
    pollfd look{fd, 0, 0};
    if (::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0) {
      on.hung_up();
    } else {
      watch_hang_up();
    }
  }

  void arm(std::size_t timer, std::chrono::milliseconds delay) {
    timers[timer].expires_after(delay);
    timers[timer].async_wait([self = self(), timer](auto error) {
      if (!error && !self->has_left_loop) self->on.timer(timer);
    });
  }

  handlers on;
  int fd;
  bool is_file;
  bool is_paused = true;
  bool is_next_posted = false;
  bool is_watching = false;
  bool is_left = false;  // another thread reads
  bool has_left_loop = false;
  std::unique_ptr<event_loop> own;
  asio::io_context& context;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  stream_descriptor descriptor;
  std::vector<asio::steady_timer> timers;
};

reactor::reactor(int input, bool is_file, std::size_t timers, handlers calls, event_loop* shared)
    : state_(std::make_shared<state>(input, is_file, std::move(calls), shared)) {
  for (std::size_t i = 0; i < timers; ++i) state_->timers.emplace_back(state_->context);
}

// Once the loop was left, the input may be closed, and its number another's.
reactor::~reactor() {
  if (!state_->has_left_loop) leave_loop();
}

void reactor::run() { state_->context.run(); }

void reactor::stop() { state_->context.stop(); }

void reactor::leave_loop() {
  state_->has_left_loop = true;
  if (!state_->is_file) state_->descriptor.release();
  state_->timers.clear();
}

void reactor::arm(std::size_t timer, std::chrono::milliseconds delay) {
  state_->post([timer, delay](state& self) { self.arm(timer, delay); });
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
  state_->post([](state& self) {
    self.is_paused = self.is_left = false;
    self.on.resumed();
    self.next();
  });
}

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
#include "io/reactor.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <utility>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "io/event_loop.hpp"

namespace kclxx::io {

namespace asio = boost::asio;
using asio::posix::stream_descriptor;

struct reactor::state : std::enable_shared_from_this<state> {
  state(int input, handlers handler, event_loop* shared)
      : on(std::move(handler)),
        fd(input),
        own(shared == nullptr ? std::make_unique<event_loop>() : nullptr),
        context(own ? own->context : shared->context),
        descriptor(context) {
    if (own) work.emplace(context.get_executor());
  }

  /// For functions that wait on the loop. On a shared loop they may outlive the reactor; a loop of
  /// its own ends before it.
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
  // open file: a terminal's shell, the writing side of a socket. Here a read follows only a check
  // that found input. So once Asio has recorded the mode as set, it is put back for good.
  void take_in_blocking_mode() {
    if (descriptor.is_open()) return;
    const int flags = ::fcntl(fd, F_GETFL);
    descriptor.assign(fd);
    boost::system::error_code ignored;
    descriptor.native_non_blocking(true, ignored);
    ::fcntl(fd, F_SETFL, flags);
  }

  void wait_for_input() {
    if (is_left || is_waiting) return;
    is_waiting = true;
    take_in_blocking_mode();
    descriptor.async_wait(stream_descriptor::wait_read, [self = self()](auto) {
      self->is_waiting = false;
      if (!self->has_left_loop) self->read();
    });
  }

  void read() {
    if (is_left) return;
    on.readable();
    wait_for_input();
  }

  void arm(std::size_t timer, std::chrono::milliseconds delay) {
    timers[timer].expires_after(delay);
    timers[timer].async_wait([self = self(), timer](auto error) {
      if (!error && !self->has_left_loop) self->on.timer(timer);
    });
  }

  // All members belong to the loop's thread; further threads post() functions that use them.
  handlers on;
  int fd;
  bool is_waiting = false;
  bool is_left = true;  // the loop does not read the input
  bool has_left_loop = false;
  std::unique_ptr<event_loop> own;
  asio::io_context& context;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work;
  stream_descriptor descriptor;
  std::vector<asio::steady_timer> timers;
};

reactor::reactor(int input, std::size_t timers, handlers calls, event_loop* shared)
    : state_(std::make_shared<state>(input, std::move(calls), shared)) {
  for (std::size_t i = 0; i < timers; ++i) state_->timers.emplace_back(state_->context);
}

// After leave_loop() the input may be closed, and its number may name another file.
reactor::~reactor() {
  if (!state_->has_left_loop) leave_loop();
}

void reactor::run() { state_->context.run(); }

void reactor::stop() { state_->context.stop(); }

void reactor::leave_loop() {
  state_->has_left_loop = true;
  state_->descriptor.release();
  state_->timers.clear();
}

void reactor::arm(std::size_t timer, std::chrono::milliseconds delay) {
  state_->post([timer, delay](state& self) { self.arm(timer, delay); });
}

void reactor::leave_input() {
  state_->is_left = true;
  // Otherwise each arrival of input would wake this thread, too.
  state_->descriptor.release();
}

void reactor::resume() {
  state_->post([](state& self) {
    self.is_left = false;
    self.read();
  });
}

bool has_input(int fd) noexcept {
  pollfd look{fd, POLLIN, 0};
  return ::poll(&look, 1, 0) == 1;
}

bool has_ended(int fd) noexcept {
  pollfd look{fd, POLLRDHUP, 0};
  return ::poll(&look, 1, 0) == 1;
}

input_poll::input_poll(int input) : input_(input) {
  // poll(2) ignores a negative descriptor, so it would wait for ever.
  if (input < 0) throw std::system_error(EBADF, std::generic_category(), "the input");
  wake_ = descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_.is_open()) throw std::system_error(errno, std::generic_category(), "eventfd");
}

input_poll::result input_poll::wait(std::optional<std::chrono::milliseconds> limit) {
  std::array<pollfd, 2> look{{{input_, POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  constexpr std::chrono::milliseconds longest(std::numeric_limits<int>::max());
  const int timeout =
      limit ? static_cast<int>(std::clamp(*limit, std::chrono::milliseconds(0), longest).count())
            : -1;
  const int count = ::poll(look.data(), look.size(), timeout);
  if (count == 0) return result::timed_out;
  if (count == -1) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "poll");
    return result::woken;
  }
  if (look[1].revents != 0) {
    eventfd_t wakes = 0;
    if (::eventfd_read(wake_.get(), &wakes) == 0) return result::woken;
    // User code has closed the descriptor.
    throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  return result::readable;
}

void input_poll::wake() noexcept { ::eventfd_write(wake_.get(), 1); }

}  // namespace kclxx::io

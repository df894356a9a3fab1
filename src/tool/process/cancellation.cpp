// SPDX-License-Identifier: Apache-2.0
#include "tool/process/cancellation.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "tool/process/program.hpp"

namespace kclxx::tool {

namespace {

std::atomic<int> the_signal{0};

std::stop_source& stop() {
  static std::stop_source source;
  return source;
}

[[noreturn]] void leave_by(int signal) noexcept {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::_Exit(128 + signal);
}

/// A thread of its own takes the signals: what the command does meanwhile does not matter.
class signal_thread {
 public:
  signal_thread(ignored_signals those, std::function<void()> before) : before_(std::move(before)) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction action {};
      ::sigaction(number, nullptr, &action);
      const bool is_ignored = action.sa_handler == SIG_IGN;
      if (!is_ignored || those == ignored_signals::are_taken) signals_.add(number);
    }
    if (before_) {
      signals_.async_wait([this](boost::system::error_code error, int) {
        if (error) return;
        await_first();
        before_();
      });
    } else {
      await_first();
    }
    thread_ = std::jthread([this] { loop_.run(); });
  }
  ~signal_thread() { loop_.stop(); }
  signal_thread(const signal_thread&) = delete;
  signal_thread& operator=(const signal_thread&) = delete;

 private:
  void await_first() {
    signals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      signals_.async_wait([](boost::system::error_code closed, int second) {
        if (closed) return;
        the_signal = second;  // the command may notice its children's end, and leave first
        kill_children();
        leave_by(second);
      });
      the_signal = number;
      stop().request_stop();
    });
  }

  std::function<void()> before_;
  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_{loop_};
  std::jthread thread_;
};

}  // namespace

void install_signal_handlers(ignored_signals those, std::function<void()> before) {
  stop();  // outlives the thread
  static const signal_thread thread(those, std::move(before));
}

std::stop_token cancellation_token() noexcept { return stop().get_token(); }

int cancellation_signal() noexcept { return the_signal.load(); }

void throw_if_cancelled() {
  if (cancellation_signal() != 0) throw cancelled();
}

void leave_by_cancellation() noexcept { leave_by(cancellation_signal()); }

}  // namespace kclxx::tool

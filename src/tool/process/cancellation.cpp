// SPDX-License-Identifier: Apache-2.0
#include "tool/process/cancellation.hpp"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
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

/// What the first signal calls in place of cancelling. The mutex is held during the call, so that
/// who takes the function away waits for its end.
struct first_call {
  std::mutex mutex;
  std::function<void()> function;

  /// False: there is none, or no longer.
  bool take() {
    const std::lock_guard lock(mutex);
    const auto taken = std::exchange(function, nullptr);
    if (taken) taken();
    return taken != nullptr;
  }
};

first_call& first() {
  static first_call call;
  return call;
}

/// A thread of its own takes the signals: what the command does meanwhile does not matter.
class signal_thread {
 public:
  signal_thread() {
    await();
    thread_ = std::jthread([this] { loop_.run(); });
  }
  ~signal_thread() { loop_.stop(); }
  signal_thread(const signal_thread&) = delete;
  signal_thread& operator=(const signal_thread&) = delete;

  void take(ignored_signals those) {
    std::packaged_task<void()> add([this, those] {
      for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action {};
        ::sigaction(number, nullptr, &action);
        const bool is_ignored = action.sa_handler == SIG_IGN;
        if (!is_ignored || those == ignored_signals::are_taken) signals_.add(number);
      }
    });
    auto added = add.get_future();
    boost::asio::post(loop_, [&add] { add(); });  // the set belongs to its thread
    added.get();
  }

 private:
  void await() {
    signals_.async_wait([this](boost::system::error_code error, int number) {
      if (error) return;
      await();
      if (first().take()) return;
      if (cancellation_signal() == 0) return cancel(number);
      the_signal = number;  // the command may notice its children's end, and leave first
      kill_children();
      leave_by(number);
    });
  }

  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_{loop_};
  std::jthread thread_;
};

}  // namespace

void install_signal_handlers(ignored_signals those) {
  stop();  // outlives the thread
  first();
  static signal_thread thread;
  thread.take(those);
}

first_signal_call::first_signal_call(std::function<void()> function) {
  const std::lock_guard lock(first().mutex);
  first().function = std::move(function);
}

first_signal_call::~first_signal_call() {
  const std::lock_guard lock(first().mutex);
  first().function = nullptr;
}

void cancel(int signal) {
  the_signal = signal;
  stop().request_stop();
}

std::stop_token cancellation_token() noexcept { return stop().get_token(); }

int cancellation_signal() noexcept { return the_signal.load(); }

void throw_if_cancelled() {
  if (cancellation_signal() != 0) throw cancelled();
}

void leave_by_cancellation() noexcept { leave_by(cancellation_signal()); }

}  // namespace kclxx::tool

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

std::atomic<int> signal_of_cancellation{0};

std::stop_source& cancellation() {
  static std::stop_source source;
  return source;
}

[[noreturn]] void leave_by(int signal) noexcept {
  std::signal(signal, SIG_DFL);
  std::raise(signal);
  std::_Exit(128 + signal);
}

/// The function that the first signal calls in place of cancelling.
struct replacement {
  /// Guards `function`. It is held during the call: the destructor of a first_signal_call, which
  /// takes the function away, waits for the end of the call.
  std::mutex mutex;
  std::function<void()> function;

  /// Calls the function, and takes it away. False: there was none.
  bool take() {
    const std::lock_guard lock(mutex);
    const auto taken = std::exchange(function, nullptr);
    if (taken) taken();
    return taken != nullptr;
  }
};

replacement& replacement_of_first_signal() {
  static replacement function;
  return function;
}

/// Takes the signals on a thread of its own, so that it does not matter what the command does
/// meanwhile.
class signal_thread {
 public:
  signal_thread() {
    await();
    thread_ = std::jthread([this] { loop_.run(); });
  }
  ~signal_thread() { loop_.stop(); }
  signal_thread(const signal_thread&) = delete;
  signal_thread& operator=(const signal_thread&) = delete;

  void take(ignored_signals ignored) {
    std::packaged_task<void()> add([this, ignored] {
      for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction action {};
        ::sigaction(number, nullptr, &action);
        const bool is_ignored = action.sa_handler == SIG_IGN;
        if (!is_ignored || ignored == ignored_signals::are_taken) signals_.add(number);
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
      if (replacement_of_first_signal().take()) return;
      if (cancellation_signal() == 0) return cancel(number);
      // The command's thread may notice the end of the children below, and leave by cancellation
      // before this thread does: then by this signal, too.
      signal_of_cancellation = number;
      kill_children();
      leave_by(number);
    });
  }

  boost::asio::io_context loop_{1};
  boost::asio::signal_set signals_{loop_};
  std::jthread thread_;
};

}  // namespace

void install_signal_handlers(ignored_signals ignored) {
  // Both are made before the thread, so that they outlive it.
  cancellation();
  replacement_of_first_signal();
  static signal_thread thread;
  thread.take(ignored);
}

first_signal_call::first_signal_call(std::function<void()> function) {
  const std::lock_guard lock(replacement_of_first_signal().mutex);
  replacement_of_first_signal().function = std::move(function);
}

first_signal_call::~first_signal_call() {
  const std::lock_guard lock(replacement_of_first_signal().mutex);
  replacement_of_first_signal().function = nullptr;
}

void cancel(int signal) {
  signal_of_cancellation = signal;
  cancellation().request_stop();
}

std::stop_token cancellation_token() noexcept { return cancellation().get_token(); }

int cancellation_signal() noexcept { return signal_of_cancellation.load(); }

void throw_if_cancelled() {
  if (cancellation_signal() != 0) throw cancelled();
}

void leave_by_cancellation() noexcept { leave_by(cancellation_signal()); }

}  // namespace kclxx::tool

// SPDX-License-Identifier: Apache-2.0
// Signals belong to the process, so each case runs in a forked copy.
#include "tool/process/cancellation.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <optional>

#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/forked.hpp"

using namespace kclxx::tool;
using namespace kclxx::test;
using namespace std::chrono_literals;

namespace {

bool is_cancelled_by(int signal) {
  return eventually([&] { return cancellation_signal() == signal; });
}

}  // namespace

TEST_CASE("a later call takes signals that an earlier one has left ignored", "[cancellation]") {
  const auto copy = in_forked_copy([] {
    std::signal(SIGINT, SIG_IGN);
    install_signal_handlers(ignored_signals::stay_ignored);
    std::raise(SIGINT);
    install_signal_handlers(ignored_signals::are_taken);
    install_signal_handlers(ignored_signals::stay_ignored);
    const bool was_ignored = cancellation_signal() == 0;
    std::raise(SIGINT);
    return first_false({was_ignored, is_cancelled_by(SIGINT)});
  });
  CHECK(copy.status == 0);
}

TEST_CASE("the function of the first signal is called once, and the second signal cancels",
          "[cancellation]") {
  const auto copy = in_forked_copy([] {
    install_signal_handlers(ignored_signals::stay_ignored);
    std::atomic<int> calls = 0;
    const first_signal_call call([&] { ++calls; });
    std::raise(SIGTERM);
    const bool was_called = eventually([&] { return calls == 1; });
    const bool was_cancelled = cancellation_token().stop_requested();
    std::raise(SIGTERM);
    return first_false({was_called, !was_cancelled, is_cancelled_by(SIGTERM), calls == 1});
  });
  CHECK(copy.status == 0);
}

TEST_CASE("the function of the first signal is not called once its object was destroyed",
          "[cancellation]") {
  const auto copy = in_forked_copy([] {
    install_signal_handlers(ignored_signals::stay_ignored);
    std::atomic<int> calls = 0;
    {
      const first_signal_call call([&] { ++calls; });
    }
    std::raise(SIGTERM);
    return first_false({is_cancelled_by(SIGTERM), calls == 0});
  });
  CHECK(copy.status == 0);
}

TEST_CASE("the destructor of the first signal's function waits until a call has returned",
          "[cancellation]") {
  const auto copy = in_forked_copy([] {
    install_signal_handlers(ignored_signals::stay_ignored);
    std::promise<void> begun;
    std::promise<void> may_return;
    std::atomic<bool> has_returned = false;
    std::optional<first_signal_call> call([&] {
      begun.set_value();
      may_return.get_future().wait();
      has_returned = true;
    });
    std::raise(SIGTERM);
    begun.get_future().wait();
    auto destroyed = std::async(std::launch::async, [&] {
      call.reset();
      return has_returned.load();
    });
    const bool waits = destroyed.wait_for(50ms) == std::future_status::timeout;
    may_return.set_value();
    return first_false({waits, destroyed.get()});
  });
  CHECK(copy.status == 0);
}

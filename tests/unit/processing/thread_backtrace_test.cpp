// SPDX-License-Identifier: Apache-2.0
// The functions that another thread is in, and what happens when the thread does not answer.
#include "processing/thread_backtrace.hpp"

#if defined(__linux__) && __has_include(<execinfo.h>)

#include <cstddef>
#include <functional>
#include <future>
#include <signal.h>
#include <string>
#include <thread>
#include <utility>

#include "support/catch.hpp"
#include "support/eventually.hpp"

using kclxx::processing::accept_backtraces;
using kclxx::processing::backtrace_of;

namespace {

/// A thread that accepts backtraces, and then runs the body.
class other_thread {
 public:
  explicit other_thread(std::function<void()> body)
      : thread_([this, run = std::move(body)] {
          number_.set_value(accept_backtraces());
          run();
        }) {}
  ~other_thread() { join(); }
  other_thread(const other_thread&) = delete;
  other_thread& operator=(const other_thread&) = delete;

  void join() {
    if (thread_.joinable()) thread_.join();
  }
  int number() { return number_.get_future().get(); }

 private:
  std::promise<int> number_;
  std::thread thread_;
};

/// On a busy machine a thread may not answer in time; a later question has it.
std::string answer_of(int thread) {
  std::string text;
  CHECK(kclxx::test::eventually([&] {
    text = backtrace_of(thread);
    return !text.empty();
  }));
  return text;
}

[[gnu::noinline]] void call_deeply(int depth, const std::function<void()>& last) {
  if (depth == 0) return last();
  call_deeply(depth - 1, last);
  asm volatile("");  // so that it is no jump
}

}  // namespace

TEST_CASE("no thread, the own and one that has ended have no backtrace", "[processing]") {
  CHECK(backtrace_of(0).empty());
  CHECK(backtrace_of(accept_backtraces()).empty());
  other_thread ended([] {});
  const int number = ended.number();
  ended.join();
  CHECK(backtrace_of(number).empty());
}

TEST_CASE("a thread that does not answer in time disturbs no later question", "[processing]") {
  std::promise<void> blocks;
  std::promise<void> may_answer;
  std::promise<void> answers;
  std::promise<void> may_end;
  other_thread other([&] {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    blocks.set_value();
    may_answer.get_future().wait();
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);  // the signal arrives now: too late
    answers.set_value();
    may_end.get_future().wait();
  });
  const int number = other.number();
  blocks.get_future().wait();
  CHECK(backtrace_of(number).empty());
  may_answer.set_value();
  answers.get_future().wait();
  CHECK_FALSE(answer_of(number).empty());
  may_end.set_value();
}

TEST_CASE("a backtrace names the innermost 24 functions", "[processing]") {
  std::promise<void> is_deep;
  std::promise<void> may_end;
  other_thread other([&] {
    call_deeply(40, [&] {
      is_deep.set_value();
      may_end.get_future().wait();
    });
  });
  const int number = other.number();
  is_deep.get_future().wait();
  const std::string text = answer_of(number);
  std::size_t names = 1;
  for (auto at = text.find(" < "); at != std::string::npos; at = text.find(" < ", at + 1)) ++names;
  CHECK(names == 24);
  may_end.set_value();
}

#endif

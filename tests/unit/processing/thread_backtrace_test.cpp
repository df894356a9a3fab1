// SPDX-License-Identifier: Apache-2.0
// The functions that another thread is in, and what happens when the thread does not answer.
#include "processing/thread_backtrace.hpp"

#if defined(__linux__) && __has_include(<execinfo.h>)

#include <cstddef>
#include <filesystem>
#include <functional>
#include <future>
#include <signal.h>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

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

std::vector<std::string> names_in(const std::string& text) {
  constexpr std::string_view separator = " < ";
  std::vector<std::string> names;
  for (std::size_t at = 0;;) {
    const auto end = text.find(separator, at);
    names.push_back(text.substr(at, end - at));
    if (end == std::string::npos) return names;
    at = end + separator.size();
  }
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

TEST_CASE("a backtrace names the innermost 24 functions, or where they are in their file",
          "[processing]") {
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
  const std::vector<std::string> names = names_in(answer_of(number));
  may_end.set_value();
  CHECK(names.size() == 24);
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").filename();
  CHECK(names.back().starts_with(program + "+0x"));
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(name.find_first_of("/(") == std::string::npos);
  }
}

TEST_CASE("a thread that accepts backtraces has its own number", "[processing]") {
  int own = 0;
  other_thread other([&] { own = static_cast<int>(::syscall(SYS_gettid)); });
  const int number = other.number();
  other.join();
  CHECK(number == own);
}

#endif

// SPDX-License-Identifier: Apache-2.0
// The functions that another thread is in, and what happens when the thread does not answer.
#include "processing/thread_backtrace.hpp"

#if defined(__linux__) && __has_include(<execinfo.h>)

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <signal.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/eventually.hpp"
#include "support/forked.hpp"

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

bool has_pending_signal() {
  sigset_t pending;
  ::sigpending(&pending);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) {
    if (::sigismember(&pending, signal) == 1) return true;
  }
  return false;
}

/// On a busy machine a thread may not answer in time; a later question has it.
std::string answer_of(int thread) {
  std::string text;
  CHECK(kclxx::test::eventually([&] {
    text = backtrace_of(thread);
    return !text.empty();
  }));
  return text;
}

/// How often the thread has waited so far.
long waits_of(int thread) {
  constexpr std::string_view field = "voluntary_ctxt_switches:";
  std::ifstream status("/proc/self/task/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field, 0) == 0) return std::stol(line.substr(field.size()));
  }
  throw std::runtime_error("the thread's status has no count of its waits");
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

TEST_CASE("a thread that cannot answer at once is waited for", "[processing]") {
  const int asking = static_cast<int>(::syscall(SYS_gettid));
  std::atomic<bool> may_end = false;
  other_thread other([&] {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    while (!may_end) {
      if (has_pending_signal()) {
        const long waits = waits_of(asking);
        kclxx::test::eventually([&] { return waits_of(asking) >= waits + 2; });
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);  // the signal arrives now
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
      }
      std::this_thread::yield();
    }
  });
  CHECK_FALSE(answer_of(other.number()).empty());
  may_end = true;
}

TEST_CASE("a backtrace begins with the function that blocks, and names functions of libraries",
          "[processing]") {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  other_thread reads([&] {
    char byte = 0;
    CHECK(::read(ends[0], &byte, 1) == 1);
  });
  other_thread joins([&] { reads.join(); });
  const int reading = reads.number();
  const int joining = joins.number();
  std::string text;
  const bool is_found = kclxx::test::eventually([&] {
    text = backtrace_of(reading);
    const auto names = names_in(text);
    // AddressSanitizer calls backtrace() from a function of its own, and read() of glibc 2.41
    // enters the kernel three functions deeper.
    const auto end = names.begin() + std::min<std::ptrdiff_t>(5, std::ssize(names));
    return std::any_of(names.begin(), end,
                       [](const std::string& name) { return name == "read" || name == "__read"; });
  });
  CAPTURE(text);
  CHECK(is_found);
  CHECK(kclxx::test::eventually([&] {
    const auto names = names_in(backtrace_of(joining));
    return std::find(names.begin(), names.end(), "std::thread::join") != names.end();
  }));
  CHECK(::write(ends[1], "x", 1) == 1);
  joins.join();
  ::close(ends[0]);
  ::close(ends[1]);
}

// A process chooses its signal once: these two run in processes of their own, see below.
TEST_CASE("all signals are used by the program", "[.][all-signals-used]") {
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_IGN);
  CHECK(accept_backtraces() == 0);
}

TEST_CASE("all signals but one are used by the program", "[.][one-signal-free]") {
  for (int signal = SIGRTMIN + 1; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_IGN);
  std::promise<void> may_end;
  other_thread other([&] { may_end.get_future().wait(); });
  CHECK_FALSE(answer_of(other.number()).empty());
  may_end.set_value();
}

TEST_CASE("a backtrace needs a real-time signal that the program does not use", "[processing]") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  const auto result =
      kclxx::test::in_forked_copy([&, tag = GENERATE("[all-signals-used]", "[one-signal-free]")] {
        ::execl(program.c_str(), program.c_str(), tag, nullptr);
        return 98;
      });
  INFO(result.out);
  CHECK(result.status == 0);
  CHECK(result.out.find("1 test case") != std::string::npos);
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

// SPDX-License-Identifier: Apache-2.0
#include "processing/thread_backtrace.hpp"

#if defined(__linux__) && __has_include(<execinfo.h>)

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <memory>
#include <mutex>
#include <string_view>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

namespace kclxx::processing {

namespace {

constexpr std::size_t most_frames = 48;
constexpr std::size_t most_names = 24;

/// What a thread was asked and has answered. It is never freed: a thread may answer late.
struct question {
  enum state : int { none, asked, answering, answered };
  std::atomic<int> state{none};
  std::atomic<int> thread{0};
  std::array<void*, most_frames> frames{};
  int count = 0;
};
question asked;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables): for the handler

int this_thread() noexcept { return static_cast<int>(::syscall(SYS_gettid)); }

void answer(int) {
  const int error = errno;
  int expected = question::asked;
  if (asked.thread.load() == this_thread() &&
      asked.state.compare_exchange_strong(expected, question::answering)) {
    asked.count = ::backtrace(asked.frames.data(), static_cast<int>(most_frames));
    asked.state.store(question::answered);
  }
  errno = error;
}

/// Installs the handler. 0 when the program uses all signals, or none can be sent. The handler
/// stays: a signal that arrives late would otherwise end the process.
int install() noexcept {
  std::array<void*, 1> first{};
  static_cast<void>(::backtrace(first.data(), 1));  // loads what it needs, which allocates
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    struct sigaction present {};
    if (::sigaction(signal, nullptr, &present) == -1 || (present.sa_flags & SA_SIGINFO) != 0 ||
        present.sa_handler != SIG_DFL) {
      continue;
    }
    struct sigaction ours {};
    ours.sa_handler = answer;
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    ::sigfillset(&ours.sa_mask);
    if (::sigaction(signal, &ours, nullptr) != 0) continue;
    // An emulator may accept a handler for a signal that it cannot send.
    if (::raise(signal) == 0) return signal;
    ::sigaction(signal, &present, nullptr);
  }
  return 0;
}

int signal_number() noexcept {
  static const int number = install();
  return number;
}

std::string demangled(const char* name) {
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(name, nullptr, nullptr, nullptr), &std::free);
  if (!text) return name;
  // Without its parameters, which make a line long. It may begin with "(anonymous namespace)".
  const std::string_view whole = text.get();
  return std::string(whole.substr(0, whole.find('(', 1)));
}

std::string name_of(void* address) {
  Dl_info info{};
  // It is a return address: the call is before it.
  if (::dladdr(static_cast<char*>(address) - 1, &info) == 0) return "?";
  if (info.dli_sname != nullptr) return demangled(info.dli_sname);
  const std::string_view path = info.dli_fname;
  std::array<char, 32> offset{};
  static_cast<void>(std::snprintf(
      offset.data(), offset.size(), "+0x%zx",
      static_cast<std::size_t>(static_cast<char*>(address) - static_cast<char*>(info.dli_fbase))));
  return std::string(path.substr(path.rfind('/') + 1)) + offset.data();
}

/// Without the signal handler and what the system puts beneath it.
std::string describe(const question& from) {
  constexpr int own_frames = 2;
  std::string text;
  std::size_t names = 0;
  for (int i = own_frames; i < from.count && names < most_names; ++i, ++names) {
    if (!text.empty()) text += " < ";
    text += name_of(from.frames.at(static_cast<std::size_t>(i)));
  }
  return text;
}

}  // namespace

int accept_backtraces() noexcept {
  thread_local const int number = [] {
    const int signal = signal_number();
    if (signal == 0) return 0;
    sigset_t ours;
    ::sigemptyset(&ours);
    ::sigaddset(&ours, signal);
    return ::pthread_sigmask(SIG_UNBLOCK, &ours, nullptr) == 0 ? this_thread() : 0;
  }();
  return number;
}

std::string backtrace_of(int thread) {
  if (thread == this_thread()) return {};
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  asked.thread.store(thread);
  asked.state.store(question::asked);
  if (::syscall(SYS_tgkill, ::getpid(), thread, signal_number()) == -1) return {};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  while (asked.state.load() != question::answered) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    int expected = question::asked;
    if (std::chrono::steady_clock::now() > deadline &&
        asked.state.compare_exchange_strong(expected, question::none)) {
      return {};
    }
  }
  return describe(asked);
}

}  // namespace kclxx::processing

#else

namespace kclxx::processing {

int accept_backtraces() noexcept { return 0; }
std::string backtrace_of(int) { return {}; }

}  // namespace kclxx::processing

#endif

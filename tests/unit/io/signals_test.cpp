// SPDX-License-Identifier: Apache-2.0
// Dispositions belong to the process, so the cases run in forked copies.
#include "io/signals.hpp"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <pthread.h>
#include <sys/resource.h>
#include <thread>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/forked.hpp"

namespace kclxx::io {

namespace {

using test::in_forked_copy;

volatile std::sig_atomic_t handled = 0;
extern "C" void own_handler(int signal) { handled = signal; }

bool is_blocked(int signal) {
  sigset_t mask;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return ::sigismember(&mask, signal) == 1;
}

}  // namespace

TEST_CASE("a read that such a signal interrupts continues", "[io][signals]") {
  CHECK(in_forked_copy([] {
          std::signal(SIGTERM, SIG_DFL);
          outlive_signals();
          struct sigaction action {};
          ::sigaction(SIGTERM, nullptr, &action);
          return (action.sa_flags & SA_RESTART) != 0 ? 0 : 1;
        }).status == 0);
}

TEST_CASE("a write beyond the limit of a file's size fails, and does not end the process",
          "[io][signals]") {
  CHECK(in_forked_copy([] {
          std::signal(SIGXFSZ, SIG_DFL);
          outlive_signals();
          const rlimit none{0, 0};
          ::setrlimit(RLIMIT_FSIZE, &none);
          std::FILE* const file = std::tmpfile();
          const bool has_failed = ::write(::fileno(file), "x", 1) == -1 && errno == EFBIG;
          return has_failed ? 0 : 1;
        }).status == 0);
}

TEST_CASE("the program's own handlers and ignored signals stay", "[io][signals]") {
  CHECK(in_forked_copy([] {
          std::signal(SIGTERM, own_handler);
          std::signal(SIGHUP, SIG_IGN);
          outlive_signals();
          std::raise(SIGTERM);
          return handled == SIGTERM && std::signal(SIGHUP, SIG_DFL) == SIG_IGN ? 0 : 1;
        }).status == 0);
}

TEST_CASE("a thread started under a block takes none of the program's signals, but its own faults",
          "[io][signals]") {
  std::atomic<int> wrong{0};
  {
    const signal_block block;
    std::thread([&wrong] {
      for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM}) {
        if (!is_blocked(signal)) wrong = signal;
      }
      for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
        if (is_blocked(signal)) wrong = signal;
      }
    }).join();
  }
  CHECK(wrong == 0);
  CHECK_FALSE(is_blocked(SIGTERM));
}

}  // namespace kclxx::io

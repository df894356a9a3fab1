// SPDX-License-Identifier: Apache-2.0
// Only a header, so that the launcher of kclxx-share can use it.
#pragma once

#include <initializer_list>
#include <pthread.h>
#include <signal.h>

namespace kclxx::io {

/// Blocks signals in the calling thread while it lives, except for a thread's own faults. A thread
/// that is started meanwhile inherits that, so that no handler of the user's program runs on it.
class signal_block {
 public:
  signal_block() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    // A fault in a thread that blocks its signal ends the process past every crash handler.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      ::sigdelset(&blocked, fault);
    }
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~signal_block() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signal_block(const signal_block&) = delete;
  signal_block& operator=(const signal_block&) = delete;

 private:
  sigset_t before_;
};

namespace detail {

extern "C" inline void kclxx_do_nothing_on_signal(int) {}

}  // namespace detail

/// Makes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE do nothing (P32): a signal to the process
/// group must not end a child before the daemon could ask it to shut down. SIGXFSZ does nothing
/// either, so that a write beyond the limit of a file's size fails and ends nothing. It sets
/// handlers with SA_RESTART, since every program that is started from here would inherit SIG_IGN. A
/// signal whose disposition is not the default keeps it: it is the program's own.
inline void outlive_signals() noexcept {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);  // with these arguments it cannot fail
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = detail::kclxx_do_nothing_on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace kclxx::io

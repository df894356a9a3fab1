// SPDX-License-Identifier: Apache-2.0
// Only a header, so that the launcher of kclxx-share can use it.
#pragma once

#include <initializer_list>
#include <pthread.h>
#include <signal.h>

namespace kclxx::io {

/// Blocks all signals but a thread's own faults in the calling thread while it lives, so that a
/// thread started meanwhile inherits that and no handler of the user's program runs on it.
class signal_block {
 public:
  signal_block() {
    sigset_t all;
    ::sigfillset(&all);
    // A fault in a thread that blocks its signal ends the process past every crash handler.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
      ::sigdelset(&all, fault);
    }
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
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
/// group must not end a child before the daemon could ask it to shut down. So does SIGXFSZ: a write
/// beyond a limit of files fails, and ends nothing. Handlers with
/// SA_RESTART, not SIG_IGN, which every program that is started from here would inherit. A signal
/// whose disposition is not the default keeps it: it is the program's own.
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

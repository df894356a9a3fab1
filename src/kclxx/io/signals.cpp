// SPDX-License-Identifier: Apache-2.0
#include "io/signals.hpp"

#include <cerrno>
#include <pthread.h>
#include <signal.h>
#include <system_error>

namespace kclxx::io {

namespace {

extern "C" void do_nothing(int) {}

}  // namespace

void outlive_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == -1) {
      throw std::system_error(errno, std::generic_category(), "sigaction");
    }
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = do_nothing;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

signal_block::signal_block() {
  sigset_t all;
  ::sigfillset(&all);
  // A fault in a thread that blocks its signal ends the process past every crash handler.
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    ::sigdelset(&all, fault);
  }
  ::pthread_sigmask(SIG_SETMASK, &all, &before_);
}

signal_block::~signal_block() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace kclxx::io

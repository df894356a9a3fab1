// SPDX-License-Identifier: Apache-2.0
#include "io/signals.hpp"

#include <initializer_list>
#include <pthread.h>
#include <signal.h>

namespace kclxx::io {

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

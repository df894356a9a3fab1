// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace kclxx::io {

/// Makes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE do nothing (P32): a signal to the process
/// group must not end a child before the daemon could ask it to shut down. Handlers with
/// SA_RESTART, not SIG_IGN, which every program that the user starts would inherit. A signal whose
/// disposition is not the default keeps it: it is the program's own. Errors: std::system_error.
void outlive_signals();

/// Blocks all signals but a thread's own faults in the calling thread while it lives, so that a
/// thread started meanwhile inherits that and no handler of the user's program runs on it.
class signal_block {
 public:
  signal_block();
  ~signal_block();
  signal_block(const signal_block&) = delete;
  signal_block& operator=(const signal_block&) = delete;

 private:
  sigset_t before_;
};

}  // namespace kclxx::io

// SPDX-License-Identifier: Apache-2.0
// Only a header, so that the launcher of kclxx-share can use it.
#pragma once

#include <initializer_list>
#include <signal.h>

namespace kclxx::io {

namespace detail {

extern "C" inline void do_nothing_on_signal(int) {}

}  // namespace detail

/// Makes SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGPIPE do nothing (P32): a signal to the process
/// group must not end a child before the daemon could ask it to shut down. Handlers with
/// SA_RESTART, not SIG_IGN, which every program that is started from here would inherit. A signal
/// whose disposition is not the default keeps it: it is the program's own.
inline void outlive_signals() noexcept {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);  // with these arguments it cannot fail
    if ((action.sa_flags & SA_SIGINFO) != 0 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = detail::do_nothing_on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace kclxx::io

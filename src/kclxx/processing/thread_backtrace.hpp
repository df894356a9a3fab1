// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace kclxx::processing {

/// Where another thread of this process stands.
///
/// A signal interrupts that thread, whose handler notes the return addresses; it allocates nothing
/// and takes no lock. System calls that SA_RESTART restarts continue; others, such as poll, return
/// EINTR, as for every signal. The signal is the highest real-time signal that the program does
/// not use.

/// Lets the calling thread be asked. Returns its number, or 0 where backtraces cannot be had.
int accept_backtraces() noexcept;

/// The functions that the thread is in, innermost first: "read < store < handle". Functions whose
/// name is not in the program's dynamic symbol table (link with -rdynamic) are shown as
/// file+offset, which addr2line reads. Empty when the thread does not respond within 200 ms, or is
/// the caller. Thread safety: may be called from any thread; one call at a time has its turn.
/// Blocking: up to 200 ms.
std::string backtrace_of(int thread);

}  // namespace kclxx::processing

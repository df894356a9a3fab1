// SPDX-License-Identifier: Apache-2.0
// Preloaded into a child whose instructions and system calls are counted. What depends on how long
// something takes would differ from run to run: timers never expire, and what waits for another
// thread by yielding waits so long that it is there.
#include <ctime>
#include <sys/timerfd.h>

extern "C" {

int timerfd_settime(int, int, const itimerspec*, itimerspec*) noexcept { return 0; }

int sched_yield() noexcept {
  const timespec pause{0, 50'000'000};
  return nanosleep(&pause, nullptr);
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
// Is preloaded into an archiver, and kills or suspends it at one of its steps in the file system.
//   STEP_AT=N STEP_DO=kill|stop|kill-after|stop-after   what happens at, or after, the N-th step
//   STEP_LINK_SECONDS=S                                 how long each hard link takes
//   STEP_CLOCK_SECONDS=S                                how far the clock is ahead
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

namespace {

long number(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? 0 : std::atol(value);
}

/// Is called before and after each step.
void meet(bool is_after) {
  static long steps = 0;
  if (!is_after) ++steps;
  const char* const action = std::getenv("STEP_DO");
  if (action == nullptr || steps != number("STEP_AT")) return;
  const std::string text = action;
  if (is_after != (text.find("-after") != std::string::npos)) return;
  ::kill(::getpid(), text.starts_with("kill") ? SIGKILL : SIGSTOP);
}

template <class Function, class... Arguments>
int step(const char* name, Arguments... arguments) {
  const auto real = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  meet(false);
  const int result = real(arguments...);
  meet(true);
  return result;
}

}  // namespace

extern "C" {

int fsync(int fd) { return step<int(int)>("fsync", fd); }

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  ::usleep(static_cast<useconds_t>(number("STEP_LINK_SECONDS") * 1'000'000));
  return step<int(int, const char*, int, const char*, int)>("linkat", from_folder, from, to_folder,
                                                            to, flags);
}

int renameat(int from_folder, const char* from, int to_folder, const char* to) noexcept {
  return step<int(int, const char*, int, const char*)>("renameat", from_folder, from, to_folder,
                                                       to);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  return step<int(int, const char*, int)>("unlinkat", folder, name, flags);
}

time_t time(time_t* result) noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  const time_t value = now.tv_sec + number("STEP_CLOCK_SECONDS");
  if (result != nullptr) *result = value;
  return value;
}
}

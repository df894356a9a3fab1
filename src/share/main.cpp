// SPDX-License-Identifier: Apache-2.0
// kclxx-share PROGRAM ARGUMENTS...: one launcher per shard, one process of the program for all.
// docs/sharing.md describes it.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>
#include <kclxx/version.hpp>

#include "share/identity.hpp"
#include "share/meeting_place.hpp"
#include "share/resident_process.hpp"
#include "share/wait.hpp"

namespace {

using namespace kclxx::share;
using kclxx::sharing::process_identity;

constexpr int usage_error = 2;
constexpr int cannot_start = 127;  // as a shell's
/// Its own: --resident-gone PROCESS NAME, of a resident and its meeting place.
constexpr char resident_gone_option[] = "--resident-gone";

constexpr char usage[] =
    "usage: kclxx-share PROGRAM [ARGUMENT...]\n"
    "In the daemon's properties: executableName = kclxx-share PROGRAM ARGUMENT...\n"
    "One process of PROGRAM, which calls kclxx::run, serves all shards of the daemon. Where that "
    "is\n"
    "not possible PROGRAM is executed for this shard alone, and a warning gives the reason.\n";

extern "C" void do_nothing(int) {}

/// As a child of kclxx: the daemon decides when it ends. Handlers, since the program that may be
/// executed here would inherit that signals are ignored.
void outlive_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == -1 || action.sa_handler != SIG_DFL) continue;
    action.sa_handler = do_nothing;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
  }
}

bool is_pipe_or_socket(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

/// A daemon that is gone has closed its end before this process got another parent.
bool has_hung_up(int input) {
  pollfd look{input, 0, 0};
  return ::poll(&look, 1, 0) == 1 && (look.revents & (POLLHUP | POLLERR)) != 0;
}

/// The shard is the resident's: whatever was open here would keep the daemon waiting.
void let_go() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null, standard) == -1) ::close(standard);
  }
  if (null > STDERR_FILENO) ::close(null);
}

[[noreturn]] void wait_for_shard(const resident_process& of, const meeting_place& place) {
  char process[16];
  std::snprintf(process, sizeof process, "%ld", static_cast<long>(of.process()));
  const char* const arguments[]{"kclxx-share", resident_gone_option, process, place.name(),
                                nullptr};
  wait_for_end(of.connection(), arguments, environ);
}

/// The resident that had accepted the shard is gone.
int leave_without_resident(const char* process, const char* name) {
  failure why;
  const meeting_place place(name, why);
  wait_for_exit(static_cast<pid_t>(std::strtol(process, nullptr, 10)));
  if (!why.is_set()) place.remove_if_dead();
  return static_cast<int>(kclxx::exit_status::resident_gone);
}

/// Serves the shard to its end. Returns with the reason when it cannot be shared.
void share(const program& what, failure& why) {
  process_identity daemon;
  if (!find_daemon(daemon)) why.set("the process that started it cannot be seen in /proc");
  if (!is_pipe_or_socket(STDIN_FILENO)) why.set("stdin is neither a pipe nor a socket");
  if (!why.is_set() && has_hung_up(STDIN_FILENO)) why.set("the daemon is gone");
  if (why.is_set()) return;
  const meeting_place place(daemon, hash_of(what, environ), why);
  // A resident may be killed between two steps; then there is another one, or room for one.
  for (int attempt = 0; attempt < 3 && !why.is_set(); ++attempt) {
    meeting_place::found found{place.connect(why), {}, 0};
    if (!found.connection.is_open() && !why.is_set()) found = place.connect_or_listen(why);
    if (why.is_set()) break;
    const bool is_first = found.listening.is_open();
    resident_process process = is_first ? resident_process(what, daemon, place, found, environ, why)
                                        : resident_process(std::move(found.connection));
    found.listening.close();
    if (why.is_set()) {
      place.remove_if_dead();
      break;
    }
    const resident_process::answer answer = process.offer_shard(daemon, environ, why);
    if (answer == resident_process::answer::accepted) {
      let_go();
      wait_for_shard(process, place);
    }
    if (answer == resident_process::answer::none) {
      wait_for_exit(process.process());
      place.remove_if_dead();
      if (is_first) {
        why.set("the program ended before it took the shard over; it has to call kclxx::run");
      }
    }
  }
  why.set("three residents ended before they took the shard over");
}

}  // namespace

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--help") == 0) {
    ::dprintf(STDOUT_FILENO, "%s", usage);
    return 0;
  }
  if (count > 1 && std::strcmp(arguments[1], "--version") == 0) {
    ::dprintf(STDOUT_FILENO, "kclxx-share %s\n", kclxx::version);
    return 0;
  }
  outlive_signals();
  if (count == 4 && std::strcmp(arguments[1], resident_gone_option) == 0) {
    return leave_without_resident(arguments[2], arguments[3]);
  }
  char** command = arguments + (count > 1 && std::strcmp(arguments[1], "--") == 0 ? 2 : 1);
  if (command - arguments >= count || **command == '-') {
    ::dprintf(STDERR_FILENO, "%s", usage);
    return usage_error;
  }
  program what{};
  if (!find_program(command, what)) {
    ::dprintf(STDERR_FILENO, "kclxx-share: there is no program %s\n", *command);
    return cannot_start;
  }
  failure why;
  share(what, why);
  ::dprintf(STDERR_FILENO, "kclxx-share warning: %s; %s serves this shard alone\n", why.text,
            *command);
  become(what, environ);
  ::dprintf(STDERR_FILENO, "kclxx-share: %s cannot be started: %s\n", what.path,
            std::strerror(errno));
  return cannot_start;
}

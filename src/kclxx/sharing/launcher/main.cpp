// SPDX-License-Identifier: Apache-2.0
// kclxx-share PROGRAM ARGUMENTS...: a launcher for each shard, and a single process of the program.
// docs/sharing.md describes it.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <kclxx/exit_status.hpp>
#include <kclxx/version.hpp>

#include "io/signals.hpp"
#include "sharing/inheritance.hpp"
#include "sharing/launcher/meeting_place.hpp"

namespace {

using namespace kclxx::sharing;
namespace io = kclxx::io;
using kclxx::exit_status;

constexpr int usage_error = 2;
constexpr int cannot_start = 127;  // as a shell's

constexpr char usage[] =
    "usage: kclxx-share PROGRAM [ARGUMENT...]\n"
    "In the daemon's properties: executableName = kclxx-share PROGRAM ARGUMENT...\n"
    "One process of PROGRAM, which calls kclxx::run, serves all shards of the daemon. Where that "
    "is\n"
    "not possible PROGRAM is executed for this shard alone, and a warning gives the reason.\n";

bool is_pipe_or_socket(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 &&
         (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

/// Leaves as a child does whose input has ended: with 0 when the daemon has asked for nothing.
[[noreturn]] void leave_without_daemon() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const bool is_asked = ::poll(&input, 1, 0) == 1 && (input.revents & POLLIN) != 0;
  if (is_asked)
    ::dprintf(STDERR_FILENO, "kclxx-share: the daemon has gone before it was answered\n");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no threads
  std::exit(static_cast<int>(is_asked ? exit_status::daemon_gone : exit_status::ok));
}

/// Leaves when the daemon is gone: nobody wants a program to be started then.
void leave_if_gone(const io::process_identity& daemon) {
  pollfd input{STDIN_FILENO, 0, 0};
  if (static_cast<std::uint64_t>(::getppid()) != daemon.id || ::poll(&input, 1, 0) == 1) {
    leave_without_daemon();
  }
}

/// Closes the shard's descriptors, which the resident has: the daemon waits for the end of all
/// copies.
void let_go() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null, standard) == -1) ::close(standard);
  }
  if (null > STDERR_FILENO) ::close(null);
}

/// Connects to the resident. Without a resident the launcher that has the folder's lock starts it,
/// while further launchers wait for the lock.
meeting_place::found find_resident(const program& program, const io::process_identity& daemon,
                                   const meeting_place& place, hand_over& connection,
                                   failure& reason) {
  const auto found = place.connect(connection, reason);
  if (found != meeting_place::found::nobody || reason.is_set()) return found;
  const folder_lock lock(place.folder());
  if (!lock.is_held()) reason.set("the folder cannot be locked: %s", std::strerror(errno));
  const auto again = reason.is_set() ? found : place.connect(connection, reason);
  if (again != meeting_place::found::nobody || reason.is_set()) return again;
  connection = start_resident(program, daemon, place, environ, reason);
  return meeting_place::found::resident;
}

/// Serves the shard to its end. Returns with the reason when it cannot be shared.
void share(const program& program, const io::process_identity& daemon, failure& reason) {
  if (!is_pipe_or_socket(STDIN_FILENO)) reason.set("stdin is neither a pipe nor a socket");
  if (reason.is_set()) return;
  const meeting_place place(daemon, hash_of(program, environ), reason);
  // A resident may be killed between two steps. The next round finds a new resident, or starts one.
  while (!reason.is_set()) {
    leave_if_gone(daemon);
    hand_over connection;
    const auto found = find_resident(program, daemon, place, connection, reason);
    if (reason.is_set() || found == meeting_place::found::busy) continue;
    int status = -1;
    switch (connection.offer_shard(daemon, environ, reason)) {
      case hand_over::answer::accepted:
        let_go();
        status = connection.wait_for_end();
        break;
      case hand_over::answer::input_ended:
        leave_without_daemon();
      case hand_over::answer::crashed:
        status = static_cast<int>(exit_status::resident_gone);
        break;
      case hand_over::answer::exited:
        place.remove_if_dead();
        if (connection.is_own_child()) {
          reason.set("the program ended before it took the shard over; it has to call kclxx::run");
        }
        break;
      case hand_over::answer::refused:
        break;
    }
    if (status == -1) continue;
    if (status == static_cast<int>(exit_status::resident_gone)) place.remove_if_dead();
    std::exit(status);  // NOLINT(concurrency-mt-unsafe): no threads
  }
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
  io::outlive_signals();
  char** command = arguments + (count > 1 && std::strcmp(arguments[1], "--") == 0 ? 2 : 1);
  if (command - arguments >= count || **command == '-') {
    ::dprintf(STDERR_FILENO, "%s", usage);
    return usage_error;
  }
  program program{};
  if (!find_program(command, program)) {
    ::dprintf(STDERR_FILENO, "kclxx-share: there is no program %s\n", *command);
    return cannot_start;
  }
  failure why;
  const io::process_identity daemon = io::parent_process();
  if (daemon.start != 0) {
    share(program, daemon, why);
    leave_if_gone(daemon);
  } else {
    why.set("the process that started it cannot be seen in /proc");
  }
  ::dprintf(STDERR_FILENO, "kclxx-share warning: %s; %s serves this shard alone\n", why.text,
            *command);
  become(program, environ);
  ::dprintf(STDERR_FILENO, "kclxx-share: %s cannot be started: %s\n", program.path,
            std::strerror(errno));
  return cannot_start;
}

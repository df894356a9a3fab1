// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fnv.hpp"
#include "io/program_path.hpp"
#include "sharing/inheritance.hpp"
#include "sharing/launcher/meeting_place.hpp"

namespace kclxx::sharing {

namespace {

constexpr int backlog = 4096;  // what Linux allows: a start of the daemon is a start of all shards

/// What the resident is started with: 0 to 2, the three of inheritance.hpp, and nothing else. It
/// outlives this process, so nothing of the shard's may stay in it but stderr, for what it prints
/// until it takes the shard over.
bool put_descriptors_in_place(int listening, int connection, int folder) {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const std::array<int, 6> wanted{null,      STDERR_FILENO, STDERR_FILENO,
                                  listening, connection,    folder};
  std::array<int, 6> high{};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    high[i] = ::fcntl(wanted[i], F_DUPFD_CLOEXEC, static_cast<int>(wanted.size()));
    if (high[i] == -1) return false;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (::dup2(high[i], static_cast<int>(i)) == -1) return false;
  }
  return ::syscall(SYS_close_range, wanted.size(), ~0U, 0) == 0;
}

struct sockets {
  io::descriptor listening;
  std::uint64_t inode = 0;
  std::array<io::descriptor, 2> connection;  // this process', the resident's
  std::array<io::descriptor, 2> listens;     // a pipe, which ends once the resident listens
};

bool open_pair(std::array<io::descriptor, 2>& ends, bool is_pipe) {
  std::array<int, 2> fds{};
  const int result = is_pipe ? ::pipe2(fds.data(), O_CLOEXEC)
                             : ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds.data());
  if (result == -1) return false;
  ends = {io::descriptor(fds[0]), io::descriptor(fds[1])};
  return true;
}

[[noreturn]] void become_resident(const program& program, const io::process_identity& daemon,
                                  const meeting_place& place, const sockets& sockets,
                                  char** environment) {
  // In this process: launchers learn by it which process they connect to (SO_PEERCRED).
  if (::listen(sockets.listening.get(), backlog) == -1) ::_exit(127);
  // A signal to the launcher's group is not meant for all shards of the daemon.
  ::setpgid(0, 0);
  char variable[256];
  std::snprintf(variable, sizeof variable, "%s=%ld %llu %llu %llu %s", resident_variable,
                static_cast<long>(::getpid()), static_cast<unsigned long long>(sockets.inode),
                static_cast<unsigned long long>(daemon.id),
                static_cast<unsigned long long>(daemon.start), place.name());
  std::size_t count = 0;
  while (environment[count] != nullptr) ++count;
  auto** extended = static_cast<char**>(std::calloc(count + 2, sizeof(char*)));
  if (extended != nullptr &&
      put_descriptors_in_place(sockets.listening.get(), sockets.connection[1].get(),
                               place.folder())) {
    std::copy_n(environment, count, extended + 1);
    extended[0] = variable;  // the first counts, should there be an older one
    become(program, extended);
  }
  ::_exit(127);
}

}  // namespace

hand_over start_resident(const program& program, const io::process_identity& daemon,
                         const meeting_place& place, char** environment, failure& reason) {
  sockets sockets;
  sockets.listening = place.bind(sockets.inode, reason);
  if (reason.is_set()) return {};
  if (!open_pair(sockets.connection, false) || !open_pair(sockets.listens, true)) {
    reason.set("no socket for the resident: %s", std::strerror(errno));
    place.remove();
    return {};
  }
  const pid_t child = ::fork();
  if (child == 0) become_resident(program, daemon, place, sockets, environment);
  if (child == -1) {
    reason.set("the resident cannot be started: %s", std::strerror(errno));
    place.remove();
    return {};
  }
  sockets.connection[1].close();
  sockets.listening.close();
  sockets.listens[1].close();
  char byte = 0;
  while (::read(sockets.listens[0].get(), &byte, 1) == -1 && errno == EINTR) continue;
  sockets.listens[0].close();
  io::descriptor process = io::open_process(static_cast<std::uint64_t>(child));
  if (!process.is_open()) reason.set("the resident cannot be watched: %s", std::strerror(errno));
  return {std::move(sockets.connection[0]), std::move(process), child};
}

namespace {

/// It makes names differ; it protects nothing.
using hash = detail::fnv_hash;

/// With its end, so that "a", "b" is another thing than "ab".
void add_text(hash& result, const char* text) { result.add({text, std::strlen(text) + 1}); }

void add_file(hash& result, const char* path) {
  struct stat status {};
  if (::stat(path, &status) == -1) return;
  result.add(status.st_dev);
  result.add(status.st_ino);
}

}  // namespace

bool find_program(char** arguments, program& found) {
  static std::array<char, PATH_MAX> place;
  found = {io::find_program(arguments[0], place), arguments};
  return found.path != nullptr;
}

void become(const program& program, char** environment) {
  ::execve(program.path, program.arguments, environment);
  if (errno != ENOEXEC) return;
  std::size_t count = 0;
  while (program.arguments[count] != nullptr) ++count;
  auto** with_shell = static_cast<char**>(std::calloc(count + 2, sizeof(char*)));
  if (with_shell == nullptr) return;
  static char shell[] = "/bin/sh";
  with_shell[0] = shell;
  with_shell[1] = const_cast<char*>(program.path);  // execve changes nothing
  for (std::size_t i = 1; i < count; ++i) with_shell[i + 1] = program.arguments[i];
  ::execve(shell, with_shell, environment);
}

std::uint64_t hash_of(const program& program, char** environment) {
  hash all;
  add_text(all, program.path);
  struct stat file {};
  if (::stat(program.path, &file) == 0) {
    all.add(file.st_dev);
    all.add(file.st_ino);
    all.add(static_cast<std::uint64_t>(file.st_size));
    all.add(static_cast<std::uint64_t>(file.st_mtim.tv_sec));
    all.add(static_cast<std::uint64_t>(file.st_mtim.tv_nsec));
  }
  for (char** argument = program.arguments; *argument != nullptr; ++argument) {
    add_text(all, *argument);
  }
  add_file(all, ".");
  // Containers may share a folder, and each has a process 1.
  add_file(all, "/proc/self/ns/pid");
  // In any order.
  std::uint64_t variables = 0;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    if (is_shard_variable(*variable)) continue;
    hash sum;
    add_text(sum, *variable);
    variables += sum.value();
  }
  all.add(variables);
  return all.value();
}

bool is_shard_variable(const char* variable) {
  return std::strncmp(variable, shard_variables, sizeof shard_variables - 1) == 0;
}

}  // namespace kclxx::sharing

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

constexpr int backlog = 4096;  // Linux allows as many: all shards of a daemon may start at once

/// Leaves the resident the descriptors 0 to 2, the three of inheritance.hpp, and no more. The
/// resident outlives the shard of this launcher, so of the shard's descriptors it gets only stderr,
/// to which it prints until it takes the shard over.
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
  std::array<io::descriptor, 2> connection;  // the end of this process, the end of the resident
  std::array<io::descriptor, 2> listens;     // a pipe, which ends when the resident listens
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
  // The resident's process must listen itself: launchers learn which process that is (SO_PEERCRED).
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
    extended[0] = variable;  // comes first, so that it counts although an older value may follow
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

/// Makes names differ; it protects nothing.
using hash = detail::fnv_hash;

/// Adds a text with its end, so that "a", "b" differs from "ab".
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
  hash result;
  add_text(result, program.path);
  struct stat file {};
  if (::stat(program.path, &file) == 0) {
    result.add(file.st_dev);
    result.add(file.st_ino);
    result.add(static_cast<std::uint64_t>(file.st_size));
    result.add(static_cast<std::uint64_t>(file.st_mtim.tv_sec));
    result.add(static_cast<std::uint64_t>(file.st_mtim.tv_nsec));
  }
  for (char** argument = program.arguments; *argument != nullptr; ++argument) {
    add_text(result, *argument);
  }
  add_file(result, ".");
  // Containers may share a folder, and each has a process 1.
  add_file(result, "/proc/self/ns/pid");
  // A sum does not depend on the order of the variables.
  std::uint64_t variables = 0;
  for (char** variable = environment; *variable != nullptr; ++variable) {
    if (is_shard_variable(*variable)) continue;
    hash variable_hash;
    add_text(variable_hash, *variable);
    variables += variable_hash.value();
  }
  result.add(variables);
  return result.value();
}

bool is_shard_variable(const char* variable) {
  return std::strncmp(variable, shard_variables, sizeof shard_variables - 1) == 0;
}

}  // namespace kclxx::sharing

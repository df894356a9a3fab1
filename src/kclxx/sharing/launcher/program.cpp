// SPDX-License-Identifier: Apache-2.0
#include "sharing/launcher/program.hpp"

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fnv.hpp"
#include "io/program_path.hpp"
#include "sharing/messages.hpp"

namespace kclxx::sharing {

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

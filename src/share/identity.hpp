// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sharing/hand_over.hpp"

namespace kclxx::share {

/// The program that the launcher stands for.
struct program {
  const char* path;
  char** arguments;  // with its name first, as the user wrote it
};

/// Looks `arguments[0]` up, in PATH when it has no slash. False: there is no such program.
bool find_program(char** arguments, program& found);

/// Becomes the program; a script without #! is run by the shell, as Java's ProcessBuilder does it.
/// Returns only when that fails, with errno.
void become(const program& what, char** environment);

/// The daemon is the process that started this one. False: there is no telling who that is.
bool find_daemon(sharing::process_identity& daemon);
/// Whether it still runs.
bool is_running(const sharing::process_identity& process);

/// What must be equal for two shards to be served by one process, besides user and daemon: the
/// program's file and arguments, the environment without the shard's own variables, and the working
/// directory.
std::uint64_t hash_of(const program& what, char** environment);

/// Of a shard: see sharing::shard_variables.
bool is_shard_variable(const char* variable);

}  // namespace kclxx::share

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sharing/launcher/meeting_place.hpp"

namespace kclxx::sharing {

/// The program that the launcher stands for.
struct program {
  const char* path;
  char** arguments;  // with its name first, as the user wrote it
};

/// Looks `arguments[0]` up, in PATH when it has no slash. False: there is no such program.
bool find_program(char** arguments, program& found);

/// Becomes the program; a script without #! is run by the shell, as Java's ProcessBuilder does it.
/// Returns only when that fails, with errno.
void become(const program& program, char** environment);

/// What must be equal for two shards to be served by one process, besides user and daemon: the
/// program's file and arguments, the environment without the shard's own variables, and the working
/// directory.
std::uint64_t hash_of(const program& program, char** environment);

/// Of a shard: see shard_variables in messages.hpp.
bool is_shard_variable(const char* variable);

/// Starts the program, to serve shards there. Under the folder's lock: it listens when this
/// returns. Errors: `reason`.
hand_over start_resident(const program& program, const io::process_identity& daemon,
                         const meeting_place& place, char** environment, failure& reason);

}  // namespace kclxx::sharing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <sys/types.h>
#include <utility>

#include "io/descriptor.hpp"
#include "io/process_identity.hpp"

namespace kclxx::sharing {

/// Why a shard is not shared: a line that people read.
struct failure {
  char text[512] = {};
  /// Sets the text as printf does. A text that was set before stays.
  [[gnu::format(printf, 2, 3)]] void set(const char* format, ...) {
    if (is_set()) return;
    va_list values;
    va_start(values, format);
    std::vsnprintf(text, sizeof text, format, values);
    va_end(values);
  }
  [[nodiscard]] bool is_set() const { return text[0] != '\0'; }
};

/// A launcher's side of the exchange with the resident. It waits for the end of the resident's
/// process, not of the connection: a program that the resident's main has started may hold that
/// open.
class hand_over {
 public:
  hand_over() = default;
  /// `process` is a pidfd of the resident. `child` is its number when this process has started it.
  hand_over(io::descriptor&& connection, io::descriptor&& process, pid_t child = -1)
      : connection_(std::move(connection)), process_(std::move(process)), child_(child) {}

  enum class answer {
    accepted,
    refused,      // with `reason`
    exited,       // the resident's process; it has touched nothing
    crashed,      // the resident's process, by a signal; known only of a child of this process
    input_ended,  // the daemon is gone
  };
  [[nodiscard]] bool is_own_child() const { return child_ != -1; }
  /// Offers the descriptors 0, 1 and 2, and waits for the answer. It may take long, while the
  /// program starts.
  answer offer_shard(const io::process_identity& daemon, char** environment, failure& reason);
  /// The exit status of the shard that was accepted; resident_gone when the resident has ended.
  int wait_for_end();

 private:
  enum class event { message, closed, process_ended, input_ended };
  event receive(struct reply_message& reply, int input) const;
  bool has_exited(int& status) const;

  io::descriptor connection_;
  io::descriptor process_;
  pid_t child_ = -1;
};

/// Where the launchers of a daemon and a program find their resident: a socket's file in a folder
/// to which only this user has access.
class meeting_place {
 public:
  /// Makes the folder where it is missing. Errors: `reason`.
  meeting_place(const io::process_identity& daemon, std::uint64_t hash, failure& reason);

  [[nodiscard]] int folder() const { return folder_.get(); }
  [[nodiscard]] const char* name() const { return name_; }

  enum class found {
    resident,  // connected
    busy,      // the resident does not accept at present; returned after a short wait
    nobody,    // no resident, or an error in `reason`
  };
  found connect(hand_over& connection, failure& reason) const {
    return connect_to(name_, connection, reason);
  }

  /// Makes a resident's socket, in place of a dead resident's. Nobody listens there yet. Call it
  /// with the folder's lock. Errors: `reason`.
  [[nodiscard]] io::descriptor bind(std::uint64_t& inode, failure& reason) const;
  /// Removes the socket's file. Call it with the folder's lock.
  void remove() const;
  /// Removes the socket's file if nobody listens there any more. Takes the lock.
  void remove_if_dead() const;

 private:
  void open_folder(failure& reason);
  found connect_to(const char* name, hand_over& connection, failure& reason) const;
  void sweep() const;

  io::descriptor folder_;
  char name_[64] = {};
  char path_[108] = {};  // of the socket; empty when an address has no room for it
};

/// The program in whose place the launcher runs.
struct program {
  const char* path;
  char** arguments;  // with its name first, as the user wrote it
};

/// Looks `arguments[0]` up, in PATH when it has no slash. False: there is no such program.
bool find_program(char** arguments, program& found);

/// Becomes the program; the shell runs a script without #!, as when the daemon starts it. Returns
/// only when that fails, with errno.
void become(const program& program, char** environment);

/// A hash of everything that two shards must have in common, besides user and daemon, so that a
/// single process can serve them: the program's file and arguments, the environment without the
/// shards' variables, and the working directory.
std::uint64_t hash_of(const program& program, char** environment);

/// Whether the variable belongs to a shard: see shard_variables in inheritance.hpp.
bool is_shard_variable(const char* variable);

/// Starts the program as the resident of this place. Call it with the folder's lock. The resident
/// listens when this returns. Errors: `reason`.
hand_over start_resident(const program& program, const io::process_identity& daemon,
                         const meeting_place& place, char** environment, failure& reason);

}  // namespace kclxx::sharing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <utility>

#include "io/descriptor.hpp"
#include "share/identity.hpp"
#include "share/meeting_place.hpp"

namespace kclxx::share {

/// The process of the program that serves all shards, as the launcher of one sees it.
class resident_process {
 public:
  /// One that another launcher has started.
  explicit resident_process(io::descriptor&& connection) : connection_(std::move(connection)) {}
  /// Starts the program, to listen there. Errors: `why`.
  resident_process(const program& what, const sharing::process_identity& daemon,
                   const meeting_place& place, const meeting_place::found& socket,
                   char** environment, failure& why);

  enum class answer {
    accepted,
    refused,  // with `why`
    none,     // it is gone, and has touched nothing
  };
  /// Offers the descriptors 0, 1 and 2, and waits for the answer. While the program starts, that
  /// may take long.
  answer offer_shard(const sharing::process_identity& daemon, char** environment, failure& why);

  [[nodiscard]] int connection() const { return connection_.get(); }
  /// -1: it is not known.
  [[nodiscard]] pid_t process() const { return process_; }

 private:
  io::descriptor connection_;
  pid_t process_ = -1;
};

/// A resident that has gone may still be on its way: until it has closed its socket, for a second.
void wait_for_exit(pid_t process);

}  // namespace kclxx::share

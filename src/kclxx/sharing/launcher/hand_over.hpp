// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <utility>

#include "io/descriptor.hpp"
#include "io/process_identity.hpp"
#include "sharing/launcher/failure.hpp"

namespace kclxx::sharing {

/// A launcher's side of the exchange with the resident. It waits for the resident's process and not
/// for the end of a connection: a program that the resident's main has started may hold that open.
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
    crashed,      // the same, by a signal; of a child only
    input_ended,  // the daemon is gone
  };
  [[nodiscard]] bool is_own_child() const { return child_ != -1; }
  /// Offers the descriptors 0, 1 and 2, and waits for the answer. While the program starts, that
  /// may take long.
  answer offer_shard(const io::process_identity& daemon, char** environment, failure& reason);
  /// The exit status of the shard that was accepted; resident_gone when the resident is.
  int wait_for_end();

 private:
  enum class event { message, closed, process_ended, input_ended };
  event receive(struct reply_message& reply, int input) const;
  bool has_exited(int& status) const;

  io::descriptor connection_;
  io::descriptor process_;
  pid_t child_ = -1;
};

}  // namespace kclxx::sharing

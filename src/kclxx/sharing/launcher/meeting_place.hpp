// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "io/descriptor.hpp"
#include "io/process_identity.hpp"
#include "sharing/launcher/failure.hpp"
#include "sharing/launcher/hand_over.hpp"

namespace kclxx::sharing {

/// Where launchers of one daemon and program find their resident: a socket's file in a folder that
/// is this user's alone.
class meeting_place {
 public:
  /// Makes the folder where it is missing. Errors: `reason`.
  meeting_place(const io::process_identity& daemon, std::uint64_t hash, failure& reason);

  [[nodiscard]] int folder() const { return folder_.get(); }
  [[nodiscard]] const char* name() const { return name_; }

  enum class found {
    resident,  // connected
    busy,      // it does not accept at present; returned after a short wait
    nobody,    // or `reason`
  };
  found connect(hand_over& connection, failure& reason) const {
    return connect_to(name_, connection, reason);
  }

  /// A resident's socket, in place of a dead one's. Nobody listens there yet. Under the folder's
  /// lock. Errors: `reason`.
  [[nodiscard]] io::descriptor bind(std::uint64_t& inode, failure& reason) const;
  /// Removes the socket's file. Under the folder's lock.
  void remove() const;
  /// The same if nobody listens there any more. Takes the lock.
  void remove_if_dead() const;

 private:
  void open_folder(failure& reason);
  found connect_to(const char* name, hand_over& connection, failure& reason) const;
  void sweep() const;

  io::descriptor folder_;
  char name_[64] = {};
  char path_[108] = {};  // of the socket; empty when an address has no room for it
};

}  // namespace kclxx::sharing

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "io/descriptor.hpp"
#include "sharing/hand_over.hpp"

namespace kclxx::share {

/// Why something is not shared: one line for people.
struct failure {
  char text[512] = {};
  /// printf; keeps the first.
  [[gnu::format(printf, 2, 3)]] void set(const char* format, ...);
  [[nodiscard]] bool is_set() const { return text[0] != '\0'; }
};

/// Where launchers of one daemon and program find their resident: a socket's file in a folder that
/// is this user's alone.
class meeting_place {
 public:
  /// Makes the folder where it is missing. Errors: `why`.
  meeting_place(const sharing::process_identity& daemon, std::uint64_t hash, failure& why);
  /// The one that another process of this environment has found.
  meeting_place(const char* name, failure& why);

  [[nodiscard]] int folder() const { return folder_.get(); }
  [[nodiscard]] const char* name() const { return name_; }

  /// A connection to a resident. Not open, without `why`: there is none.
  [[nodiscard]] io::descriptor connect(failure& why) const;

  struct found {
    io::descriptor connection;  // to a resident that another launcher made; or
    io::descriptor listening;   // the socket of a resident to be made
    std::uint64_t inode = 0;    // of its file
  };
  /// One launcher at a time: connects, or makes the socket.
  [[nodiscard]] found connect_or_listen(failure& why) const;

  /// Removes the socket's file if nobody listens there any more.
  void remove_if_dead() const;

 private:
  void open_folder(failure& why);
  [[nodiscard]] io::descriptor connect_to(const char* name, failure& why) const;
  void sweep() const;

  io::descriptor folder_;
  char name_[64] = {};
};

}  // namespace kclxx::share

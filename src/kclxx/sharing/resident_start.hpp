// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "io/descriptor.hpp"
#include "sharing/hand_over.hpp"

namespace kclxx::sharing {

/// What kclxx-share started this process with: see hand_over.hpp.
struct resident_start {
  io::descriptor listening;
  io::descriptor connection;
  io::descriptor folder;
  std::string socket_name;
  std::uint64_t socket_inode = 0;
  process_identity daemon;
};

/// std::nullopt: the process was not started as a resident. Call it once.
std::optional<resident_start> started_as_resident();

/// Removes the socket's file, unless it is another's by now.
void remove_socket(const resident_start& of) noexcept;

/// A descriptor that becomes readable when the daemon ends. Errors: std::system_error.
io::descriptor watch(const process_identity& process);

}  // namespace kclxx::sharing

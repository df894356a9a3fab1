// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "io/descriptor.hpp"
#include "io/process_identity.hpp"
#include "sharing/folder_lock.hpp"

namespace kclxx::sharing {

/// What the launcher that started this process left to it: see messages.hpp.
struct inheritance {
  io::descriptor listening;
  io::descriptor connection;
  io::descriptor folder;
  std::string socket_name;
  std::uint64_t socket_inode = 0;
  io::process_identity daemon;
};

/// std::nullopt: the process was not started as a resident. Call it once.
/// Errors: std::runtime_error when the descriptors are not what the launcher left; none is touched.
std::optional<inheritance> inherited();

/// Removes the socket's file, unless it is another's by now, or the folder's lock cannot be had
/// within `limit`.
void remove_socket(const inheritance& start,
                   std::chrono::milliseconds limit = folder_lock::default_limit) noexcept;

/// A descriptor that becomes readable when the daemon ends. Errors: std::system_error.
io::descriptor watch(const io::process_identity& process);

}  // namespace kclxx::sharing

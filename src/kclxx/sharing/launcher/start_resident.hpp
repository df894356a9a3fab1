// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sharing/launcher/failure.hpp"
#include "sharing/launcher/hand_over.hpp"
#include "sharing/launcher/meeting_place.hpp"
#include "sharing/launcher/program.hpp"

namespace kclxx::sharing {

/// Starts the program, to serve shards there. Under the folder's lock: it listens when this
/// returns. Errors: `reason`.
hand_over start_resident(const program& program, const io::process_identity& daemon,
                         const meeting_place& place, char** environment, failure& reason);

}  // namespace kclxx::sharing

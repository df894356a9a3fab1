// SPDX-License-Identifier: Apache-2.0
// Copies the two directions of a dialogue, as the bytes come and without changing one, and lets
// them be recorded. Each function runs until `from` ends or nobody reads `to`, and closes both
// then: what happened on one side has happened on the other at once.
#pragma once

#include "tool/capture/recorder.hpp"
#include "tool/process/descriptor.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::cli {

/// From the daemon, both descriptors pipes: the child gets the same pages, without a copy, before
/// anything else is done.
/// Blocking: until the end.
void relay_pages(descriptor from, descriptor to, recorder& order);

/// From a daemon that is no pipe, or from the child, as `lines` says.
/// Blocking: until the end.
void relay_bytes(descriptor from, descriptor to, recorder& order, transcript::entry_kind lines);

}  // namespace kclxx::cli

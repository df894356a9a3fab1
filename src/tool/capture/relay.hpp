// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/descriptor.hpp"
#include "tool/capture/recorder.hpp"
#include "tool/transcript/entry.hpp"

namespace kclxx::tool {

/// Copies one direction of a dialogue, as the bytes come and unchanged, and records them. Runs
/// until `from` ends or nobody reads `to`, and closes both then, so that either side sees at once
/// what happened on the other.
/// Blocking: until the end.
void relay(io::descriptor source, io::descriptor target, recorder& record,
           transcript::entry_kind line_of_side);

}  // namespace kclxx::tool

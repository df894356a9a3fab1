// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::protocol {

/// Appends `bytes` as standard base64 with padding: for parked records, and for those who play the
/// daemon.
void append_base64(std::string& out, std::string_view bytes);

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace kclxx::daemon_model {

/// Appends `bytes` as standard base64 with padding. For those who play the daemon; a child only
/// decodes.
void append_base64(std::string& out, std::string_view bytes);

}  // namespace kclxx::daemon_model

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace kclxx::protocol {

struct base64_result {
  std::size_t size;             ///< bytes decoded, or with an error the index of the bad character
  const char* error = nullptr;  ///< a phrase for the log, or null
};

/// Decodes standard base64, with padding, over its own text. Unused bits of the last character
/// are ignored, as Java's decoders do.
base64_result decode_base64(char* text, std::size_t size) noexcept;

}  // namespace kclxx::protocol

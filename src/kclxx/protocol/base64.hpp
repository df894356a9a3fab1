// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace kclxx::protocol {

inline constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct base64_result {
  std::size_t size;             ///< bytes decoded, or with an error the index of the bad character
  const char* error = nullptr;  ///< a phrase for the log, or null
  std::size_t groups = 0;       ///< with an error: groups of four characters decoded before it
};

/// Decodes standard base64, with padding, over its own text. Unused bits of the last character
/// are ignored, as Java's decoders do. Touches no byte outside of the text. Vectorized where this
/// processor can.
base64_result decode_base64(char* text, std::size_t size) noexcept;

/// The same, one group of four characters at a time: for other processors, and for the tests.
base64_result decode_base64_scalar(char* text, std::size_t size) noexcept;

/// Undoes what a decoding that failed did: puts the text of that many groups back.
void restore_base64(char* text, std::size_t groups) noexcept;

/// Decodes 32 or 64 characters a step over their own text, and stops before the first step that has
/// a character outside of the alphabet or that `size` cuts off. Returns the characters taken.
using base64_blocks = std::size_t (*)(char* text, std::size_t size) noexcept;

/// The one for this processor, or null.
base64_blocks vectorized_base64_blocks() noexcept;

}  // namespace kclxx::protocol

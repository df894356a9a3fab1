// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kclxx::protocol {

/// Appends `bytes` as standard base64 with padding: for parked records, and for the lines of a
/// daemon that is played.
void append_base64(std::string& out, std::string_view bytes);

inline constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

struct base64_result {
  std::size_t size;             ///< bytes decoded, or with an error the index of the bad character
  const char* error = nullptr;  ///< a phrase for the log, or null
  std::size_t groups = 0;       ///< with an error: groups of four characters decoded before it
};

/// Decodes standard base64, with padding, over its own text. Unused bits of the last character
/// are ignored, as the daemon's decoder does. Touches no byte outside of the text. Vectorized where
/// this processor can.
base64_result decode_base64(char* text, std::size_t size) noexcept;

/// Undoes a decoding that failed after `groups` groups: puts their text back.
void restore_base64(char* text, std::size_t groups) noexcept;

/// Decodes text in place, many characters in a step. It stops before the first step that has a
/// character outside of the alphabet, and before a last step that is too short. `size` is a
/// multiple of four. Returns how many characters it took, a multiple of four.
using base64_blocks = std::size_t (*)(char* text, std::size_t size) noexcept;

/// The function for this processor; null if the processor has no such instructions.
base64_blocks vectorized_base64_blocks() noexcept;

/// Decodes as decode_base64 does, with these blocks first. Null: by groups of four characters.
base64_result decode_base64_with(base64_blocks blocks, char* text, std::size_t size) noexcept;

inline constexpr std::uint8_t base64_bad = 0x80;

/// The value of each of the first 128 bytes, or base64_bad outside of the alphabet.
inline constexpr std::array<std::uint8_t, 128> base64_values = [] {
  std::array<std::uint8_t, 128> values{};
  for (auto& value : values) value = base64_bad;
  for (std::size_t value = 0; value < base64_alphabet.size(); ++value) {
    values[static_cast<unsigned char>(base64_alphabet[value])] = static_cast<std::uint8_t>(value);
  }
  return values;
}();

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kclxx::protocol {

/// Appends `bytes` as standard base64 with padding: for parked records, and for those who play the
/// daemon.
void append_base64(std::string& out, std::string_view bytes);

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

/// Undoes what a decoding that failed did: puts the text of that many groups back.
void restore_base64(char* text, std::size_t groups) noexcept;

/// Decodes many characters a step over their own text, and stops before the first step that has a
/// character outside of the alphabet or that it cannot do. `size` is a multiple of four. Returns
/// the characters taken, a multiple of four.
using base64_blocks = std::size_t (*)(char* text, std::size_t size) noexcept;

/// The one for this processor; null where it lacks what that takes.
base64_blocks vectorized_base64_blocks() noexcept;

/// As decode_base64, with one of them; null: one group of four characters at a time.
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

// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64.hpp"

#include <array>
#include <cstdint>

namespace kclxx::protocol {

namespace {

constexpr std::uint32_t bad = 0x01000000;  // above the 24 bits of a group

constexpr std::array<std::uint32_t, 256> table(int shift) {
  std::array<std::uint32_t, 256> values{};
  for (auto& value : values) value = bad;
  constexpr char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::uint32_t i = 0; i < 64; ++i) {
    values[static_cast<unsigned char>(alphabet[i])] = i << shift;
  }
  return values;
}

// One table per place in a group, so that a group is four loads and three ors.
constexpr auto first = table(18);
constexpr auto second = table(12);
constexpr auto third = table(6);
constexpr auto fourth = table(0);

std::uint32_t group(const unsigned char* in) {
  return first[in[0]] | second[in[1]] | third[in[2]] | fourth[in[3]];
}

void store(char* out, std::uint32_t bits) {
  out[0] = static_cast<char>(bits >> 16);
  out[1] = static_cast<char>(bits >> 8);
  out[2] = static_cast<char>(bits);
}

base64_result bad_character(const unsigned char* in, std::size_t from, std::size_t to) {
  while (from < to && fourth[in[from]] != bad) ++from;
  return {from, "is not base64"};
}

}  // namespace

base64_result decode_base64(char* text, std::size_t size) noexcept {
  const auto* in = reinterpret_cast<const unsigned char*>(text);
  if (size == 0) return {0};
  std::size_t padding = 0;
  if (size % 4 == 0)
    padding = (text[size - 1] == '=' ? 1U : 0U) +
              (text[size - 2] == '=' && text[size - 1] == '=' ? 1U : 0U);
  const std::size_t whole = (size - padding) / 4 * 4;
  char* out = text;
  for (std::size_t at = 0; at < whole; at += 4) {
    const std::uint32_t bits = group(in + at);
    if (bits >= bad) return bad_character(in, at, at + 4);
    store(out, bits);
    out += 3;
  }
  const std::size_t rest = size - padding - whole;
  if (rest > 0) {
    if (const auto error = bad_character(in, whole, whole + rest); error.size < whole + rest) {
      return error;
    }
    if (padding == 0 || rest == 1) return {size, "is base64 that is cut off"};
    const std::uint32_t bits =
        first[in[whole]] | second[in[whole + 1]] | (rest == 3 ? third[in[whole + 2]] : 0);
    *out++ = static_cast<char>(bits >> 16);
    if (rest == 3) *out++ = static_cast<char>(bits >> 8);
  }
  return {static_cast<std::size_t>(out - text)};
}

}  // namespace kclxx::protocol

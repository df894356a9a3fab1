// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64.hpp"

namespace kclxx::protocol {

namespace {

constexpr std::uint32_t bad = 0x01000000;  // above the 24 bits of a group

constexpr std::array<std::uint32_t, 256> values_at(int shift) {
  std::array<std::uint32_t, 256> values{};
  for (auto& value : values) value = bad;
  for (std::uint32_t i = 0; i < 64; ++i) {
    values[static_cast<unsigned char>(base64_alphabet[i])] = i << shift;
  }
  return values;
}

// One table per place in a group, so that a group is four loads and three ors.
constexpr auto first = values_at(18);
constexpr auto second = values_at(12);
constexpr auto third = values_at(6);
constexpr auto fourth = values_at(0);

std::uint32_t group(const unsigned char* text) {
  return first[text[0]] | second[text[1]] | third[text[2]] | fourth[text[3]];
}

void store(char* out, std::uint32_t bits) {
  out[0] = static_cast<char>(bits >> 16);
  out[1] = static_cast<char>(bits >> 8);
  out[2] = static_cast<char>(bits);
}

base64_result bad_character(const unsigned char* text, std::size_t begin, std::size_t end,
                            std::size_t groups) {
  while (begin < end && fourth[text[begin]] != bad) ++begin;
  return {begin, "is not base64", groups};
}

}  // namespace

base64_result decode_base64_with(base64_blocks blocks, char* text, std::size_t size) noexcept {
  const auto* in = reinterpret_cast<const unsigned char*>(text);
  if (size == 0) return {0};
  std::size_t padding = 0;
  if (size % 4 == 0)
    padding = (text[size - 1] == '=' ? 1U : 0U) +
              (text[size - 2] == '=' && text[size - 1] == '=' ? 1U : 0U);
  const std::size_t whole = (size - padding) / 4 * 4;
  std::size_t at = blocks == nullptr ? 0 : blocks(text, whole);
  char* out = text + at / 4 * 3;
  for (; at < whole; at += 4) {
    const std::uint32_t bits = group(in + at);
    if (bits >= bad) return bad_character(in, at, at + 4, at / 4);
    store(out, bits);
    out += 3;
  }
  const std::size_t rest = size - padding - whole;
  if (rest > 0) {
    const std::uint32_t bits = first[in[whole]] | (rest > 1 ? second[in[whole + 1]] : 0) |
                               (rest > 2 ? third[in[whole + 2]] : 0);
    if (bits >= bad) return bad_character(in, whole, whole + rest, whole / 4);
    if (padding == 0 || rest == 1) return {size, "is base64 that is cut off", whole / 4};
    *out++ = static_cast<char>(bits >> 16);
    if (rest == 3) *out++ = static_cast<char>(bits >> 8);
  }
  return {static_cast<std::size_t>(out - text)};
}

base64_result decode_base64(char* text, std::size_t size) noexcept {
  static const base64_blocks blocks = vectorized_base64_blocks();
  return decode_base64_with(blocks, text, size);
}

void restore_base64(char* text, std::size_t groups) noexcept {
  // From the end: a group's text covers the bytes of the groups after it.
  for (std::size_t i = groups; i-- > 0;) {
    const auto byte = [&](std::size_t place) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(text[3 * i + place]));
    };
    const std::uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t place = 0; place < 4; ++place) {
      text[4 * i + place] = base64_alphabet[bits >> (18 - 6 * place) & 63];
    }
  }
}

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
// base64 with NEON, which each 64-bit ARM processor has.
#include "protocol/base64.hpp"

#if defined(__aarch64__)

#include <arm_neon.h>
#include <cstdint>

namespace kclxx::protocol {

namespace {

uint8x16x4_t lookup_table(const std::uint8_t* table) {
  return {{vld1q_u8(table), vld1q_u8(table + 16), vld1q_u8(table + 32), vld1q_u8(table + 48)}};
}

// A lookup gives 0 for an index from 64 on, so each half of the table gives what the other does not
// have. What is above both is bad by its bit 7.
uint8x16_t value_of(uint8x16_t characters, const uint8x16x4_t& low, const uint8x16x4_t& high) {
  const uint8x16_t from_high = vqtbl4q_u8(high, veorq_u8(characters, vdupq_n_u8(64)));
  const uint8x16_t found = vorrq_u8(vqtbl4q_u8(low, characters), from_high);
  return vorrq_u8(found, vandq_u8(characters, vdupq_n_u8(base64_bad)));
}

// The load takes 64 characters apart by their place in a group, and the store puts the three bytes
// of each group together, so a step is longer than base64_blocks asks for.
std::size_t decode_blocks(char* text, std::size_t size) noexcept {
  const uint8x16x4_t low = lookup_table(base64_values.data());
  const uint8x16x4_t high = lookup_table(base64_values.data() + 64);
  auto* bytes = reinterpret_cast<std::uint8_t*>(text);
  std::uint8_t* out = bytes;
  std::size_t at = 0;
  for (; size - at >= 64; at += 64) {
    const uint8x16x4_t in = vld4q_u8(bytes + at);
    const uint8x16_t first = value_of(in.val[0], low, high);
    const uint8x16_t second = value_of(in.val[1], low, high);
    const uint8x16_t third = value_of(in.val[2], low, high);
    const uint8x16_t fourth = value_of(in.val[3], low, high);
    if (vmaxvq_u8(vorrq_u8(vorrq_u8(first, second), vorrq_u8(third, fourth))) >= base64_bad) break;
    vst3q_u8(out, {{vorrq_u8(vshlq_n_u8(first, 2), vshrq_n_u8(second, 4)),
                    vorrq_u8(vshlq_n_u8(second, 4), vshrq_n_u8(third, 2)),
                    vorrq_u8(vshlq_n_u8(third, 6), fourth)}});
    out += 48;
  }
  return at;
}

}  // namespace

base64_blocks vectorized_base64_blocks() noexcept { return &decode_blocks; }

}  // namespace kclxx::protocol

#endif

// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#endif
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

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

// Each place in a group has a table, so that a group is four loads and three ors.
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
  const std::size_t last_group = size - padding - whole;
  if (last_group > 0) {
    const std::uint32_t bits = first[in[whole]] | (last_group > 1 ? second[in[whole + 1]] : 0) |
                               (last_group > 2 ? third[in[whole + 2]] : 0);
    if (bits >= bad) return bad_character(in, whole, whole + last_group, whole / 4);
    if (padding == 0 || last_group == 1) return {size, "is base64 that is cut off", whole / 4};
    *out++ = static_cast<char>(bits >> 16);
    if (last_group == 3) *out++ = static_cast<char>(bits >> 8);
  }
  return {static_cast<std::size_t>(out - text)};
}

base64_result decode_base64(char* text, std::size_t size) noexcept {
  static const base64_blocks blocks = vectorized_base64_blocks();
  return decode_base64_with(blocks, text, size);
}

void restore_base64(char* text, std::size_t groups) noexcept {
  // The last group comes first: a group's text covers the bytes of the groups after it.
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

#if defined(__x86_64__) && defined(__GNUC__)

// base64 with AVX2. Only these functions are compiled for it: the library itself runs on any
// processor.
namespace {

// A character is looked up by its halves of four bits. Upper halves with the same set of valid
// lower halves share a bit; a lower half has the bits of the sets that it is not in. So a character
// is valid when its halves have no bit in common.
enum : std::uint8_t { plus_and_slash = 1, digits = 2, letters_1 = 4, letters_2 = 8, nothing = 16 };

constexpr std::uint8_t set_of(std::size_t upper) {
  constexpr std::array<std::uint8_t, 8> sets{nothing,   nothing,   plus_and_slash, digits,
                                             letters_1, letters_2, letters_1,      letters_2};
  return upper < sets.size() ? sets[upper] : std::uint8_t{nothing};
}

using table = std::array<std::uint8_t, 16>;

constexpr table make_sets() {
  table sets{};
  for (std::size_t upper = 0; upper < 16; ++upper) sets[upper] = set_of(upper);
  return sets;
}

constexpr table make_missing() {
  table missing{};
  for (auto& bits : missing) bits = plus_and_slash | digits | letters_1 | letters_2 | nothing;
  for (const char c : base64_alphabet) {
    const std::size_t byte = static_cast<unsigned char>(c);
    missing[byte & 15] = static_cast<std::uint8_t>(missing[byte & 15] & ~set_of(byte >> 4));
  }
  return missing;
}

// What must be added to a character for its value. It depends on the upper half alone, but for '/',
// which takes the free place before that of '+'.
constexpr table make_offsets() {
  table offsets{};
  for (std::size_t value = 0; value < base64_alphabet.size(); ++value) {
    const std::size_t byte = static_cast<unsigned char>(base64_alphabet[value]);
    const std::size_t place = (byte >> 4) - (base64_alphabet[value] == '/' ? 1 : 0);
    offsets[place] = static_cast<std::uint8_t>(value - byte);
  }
  return offsets;
}

constexpr table sets = make_sets();
constexpr table missing = make_missing();
constexpr table offsets = make_offsets();

#define KCLXX_AVX2 __attribute__((target("avx2")))

KCLXX_AVX2 __m256i twice(const table& values) {
  return _mm256_broadcastsi128_si256(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(values.data())));
}

// 32 values of 6 bits to 24 bytes.
KCLXX_AVX2 __m256i pack(__m256i values) {
  const __m256i pairs = _mm256_maddubs_epi16(values, _mm256_set1_epi32(0x01400140));
  const __m256i groups = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00011000));
  const __m256i bytes =
      _mm256_shuffle_epi8(groups, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                      2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1)));
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
}

KCLXX_AVX2 std::size_t decode_with_avx2(char* text, std::size_t size) noexcept {
  const __m256i low_half = _mm256_set1_epi8(15);
  const __m256i slash = _mm256_set1_epi8('/');
  const __m256i all_sets = twice(sets);
  const __m256i all_missing = twice(missing);
  const __m256i all_offsets = twice(offsets);
  char* out = text;
  std::size_t at = 0;
  for (; size - at >= 32; at += 32) {
    const __m256i in = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + at));
    const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(in, 4), low_half);
    const __m256i lower = _mm256_and_si256(in, low_half);
    const __m256i set = _mm256_shuffle_epi8(all_sets, upper);
    if (_mm256_testz_si256(set, _mm256_shuffle_epi8(all_missing, lower)) == 0) break;
    const __m256i place = _mm256_add_epi8(upper, _mm256_cmpeq_epi8(in, slash));
    const __m256i values = _mm256_add_epi8(in, _mm256_shuffle_epi8(all_offsets, place));
    // This writes 8 bytes too many. They end at or before the last character that was read.
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), pack(values));
    out += 24;
  }
  return at;
}

}  // namespace

base64_blocks vectorized_base64_blocks() noexcept {
  __builtin_cpu_init();  // a static constructor may run before libgcc's own
  return __builtin_cpu_supports("avx2") != 0 ? &decode_with_avx2 : nullptr;
}

#elif defined(__aarch64__)

// base64 with NEON, which each 64-bit ARM processor has.
namespace {

uint8x16x4_t lookup_table(const std::uint8_t* table) {
  return {{vld1q_u8(table), vld1q_u8(table + 16), vld1q_u8(table + 32), vld1q_u8(table + 48)}};
}

// A lookup gives 0 for an index from 64 on, so the two halves of the table are looked up and
// joined. A character from 128 on is in neither half: its bit 7 makes it bad.
uint8x16_t value_of(uint8x16_t characters, const uint8x16x4_t& low, const uint8x16x4_t& high) {
  const uint8x16_t from_high = vqtbl4q_u8(high, veorq_u8(characters, vdupq_n_u8(64)));
  const uint8x16_t values = vorrq_u8(vqtbl4q_u8(low, characters), from_high);
  return vorrq_u8(values, vandq_u8(characters, vdupq_n_u8(base64_bad)));
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
    const uint8x16_t a = value_of(in.val[0], low, high);
    const uint8x16_t b = value_of(in.val[1], low, high);
    const uint8x16_t c = value_of(in.val[2], low, high);
    const uint8x16_t d = value_of(in.val[3], low, high);
    if (vmaxvq_u8(vorrq_u8(vorrq_u8(a, b), vorrq_u8(c, d))) >= base64_bad) break;
    vst3q_u8(out, {{vorrq_u8(vshlq_n_u8(a, 2), vshrq_n_u8(b, 4)),
                    vorrq_u8(vshlq_n_u8(b, 4), vshrq_n_u8(c, 2)), vorrq_u8(vshlq_n_u8(c, 6), d)}});
    out += 48;
  }
  return at;
}

}  // namespace

base64_blocks vectorized_base64_blocks() noexcept { return &decode_blocks; }

#else

base64_blocks vectorized_base64_blocks() noexcept { return nullptr; }

#endif

void append_base64(std::string& out, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 3))) {
    const auto at = [&](std::size_t index) {
      return index < bytes.size() ? std::uint32_t{static_cast<unsigned char>(bytes[index])} : 0;
    };
    const std::uint32_t bits = at(0) << 16 | at(1) << 8 | at(2);
    out += base64_alphabet[bits >> 18];
    out += base64_alphabet[bits >> 12 & 63];
    out += bytes.size() > 1 ? base64_alphabet[bits >> 6 & 63] : '=';
    out += bytes.size() > 2 ? base64_alphabet[bits & 63] : '=';
  }
}

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
// base64 with AVX2. Compiled for these functions only: the library itself runs on any
// processor.
#include "protocol/base64.hpp"

#if defined(__x86_64__) && defined(__GNUC__)

#include <array>
#include <cstdint>
#include <immintrin.h>

namespace kclxx::protocol {

namespace {

// A character is looked up by its halves. Upper halves with the same set of valid lower halves
// share a bit; a lower half has the bits of those in whose set it is not. So a character is valid
// when its halves have no bit in common.
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

// What to add to a character for its value: the same for all of an upper half, but for '/', which
// takes the free place before that of '+'.
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
    // 8 bytes more than there are: they end at or before the characters just read.
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

}  // namespace kclxx::protocol

#elif !defined(__aarch64__)  // base64_neon.cpp

namespace kclxx::protocol {

base64_blocks vectorized_base64_blocks() noexcept { return nullptr; }

}  // namespace kclxx::protocol

#endif

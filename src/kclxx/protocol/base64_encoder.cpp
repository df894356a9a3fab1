// SPDX-License-Identifier: Apache-2.0
#include "protocol/base64_encoder.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "protocol/base64.hpp"

namespace kclxx::protocol {

namespace {

constexpr std::string_view alphabet = base64_alphabet;

using pair = std::array<char, 2>;

/// Two characters at a time: half the lookups, and 8 KiB of table.
constexpr std::array<pair, 4096> make_pairs() {
  std::array<pair, 4096> result{};
  for (std::size_t i = 0; i < result.size(); ++i) {
    result[i] = {alphabet[i >> 6], alphabet[i & 63]};
  }
  return result;
}
constexpr std::array<pair, 4096> pairs = make_pairs();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  const std::size_t begin = out.size();
  out.resize(begin + (bytes.size() + 2) / 3 * 4);
  char* target = out.data() + begin;
  const auto at = [&](std::size_t index) {
    return std::uint32_t{static_cast<unsigned char>(bytes[index])};
  };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3, target += 4) {
    const std::uint32_t bits = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    std::memcpy(target, pairs[bits >> 12].data(), 2);
    std::memcpy(target + 2, pairs[bits & 0xFFF].data(), 2);
  }
  const std::size_t rest = bytes.size() - i;
  if (rest == 0) return;
  const std::uint32_t bits = at(i) << 16 | (rest == 2 ? at(i + 1) << 8 : 0);
  target[0] = alphabet[bits >> 18];
  target[1] = alphabet[bits >> 12 & 63];
  target[2] = rest == 2 ? alphabet[bits >> 6 & 63] : '=';
  target[3] = '=';
}

}  // namespace kclxx::protocol

// SPDX-License-Identifier: Apache-2.0
#include "base/arrival_time.hpp"

#include <cstdio>
#include <ctime>

namespace kclxx::detail {

// A sequence number has 47 hexadecimal digits. The first and the last one are the version, 2. The
// nine digits before the last nine are the time.
std::optional<std::int64_t> arrival_of(std::string_view sequence_number) {
  constexpr std::string_view first = "49039857307708443467467104868809893875799651909875269632";
  constexpr std::string_view last = "73559785961562665201200657303214840813699477864812904447";
  const bool has_version =
      sequence_number.size() == first.size() && sequence_number >= first && sequence_number <= last;
  if (!has_version || sequence_number.find_first_not_of("0123456789") != std::string_view::npos) {
    return std::nullopt;
  }
  // Both have nine hexadecimal digits of the number that the decimal digits read so far make.
  constexpr std::uint64_t mask = (std::uint64_t{1} << 36) - 1;
  std::uint64_t low = 0;
  std::uint64_t seconds = 0;
  for (const char digit : sequence_number) {
    low = low * 10 + static_cast<std::uint64_t>(digit - '0');
    seconds = (seconds * 10 + (low >> 36)) & mask;
    low &= mask;
  }
  return (low & 0xF) == 2 ? std::optional(static_cast<std::int64_t>(seconds)) : std::nullopt;
}

std::string to_iso_8601(std::chrono::system_clock::time_point time) {
  using namespace std::chrono;
  const auto whole = floor<milliseconds>(time);
  const std::time_t seconds = system_clock::to_time_t(whole);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03dZ",
                static_cast<int>((whole.time_since_epoch() % std::chrono::seconds(1)).count()));
  return std::string(text, length) + fraction;
}

}  // namespace kclxx::detail

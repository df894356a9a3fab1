// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kclxx::detail {

/// When a record arrived, in seconds since 1970: Kinesis encodes the time in the sequence number.
/// std::nullopt: the number is not of the form that encodes it.
[[nodiscard]] std::optional<std::int64_t> arrival_of(std::string_view sequence_number);

/// "2026-11-22T05:43:21.123Z".
[[nodiscard]] std::string to_iso_8601(std::chrono::system_clock::time_point time);

}  // namespace kclxx::detail

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <kclxx/log.hpp>
#include <kclxx/observer.hpp>

namespace kclxx::detail {

/// Of the daemon's exceptions, in checkpoint_errc's order.
inline constexpr std::array<std::string_view, 5> exception_names{
    "ThrottlingException", "KinesisClientLibDependencyException", "ShutdownException",
    "InvalidStateException", "IllegalArgumentException"};

/// Of record_processor's functions, in callback_kind's order.
inline constexpr std::array<std::string_view, 5> callback_names{
    "initialize", "process_records", "lease_lost", "shard_ended", "shutdown_requested"};

constexpr std::string_view callback_name(observer::callback_kind kind) noexcept {
  return callback_names[static_cast<std::size_t>(kind)];
}

/// In log_level's order.
inline constexpr std::array<std::string_view, 3> level_names{"info", "warning", "error"};

constexpr std::string_view level_name(log_level level) noexcept {
  return level_names[static_cast<std::size_t>(level)];
}

}  // namespace kclxx::detail

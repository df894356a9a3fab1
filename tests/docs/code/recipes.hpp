// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <kclxx/kclxx.hpp>

namespace recipes {

using function = std::function<void(std::string_view)>;

/// Calls `show` with the records of the last hour, and leaves older ones out.
kclxx::processor_factory recent_records(function show);
/// Calls `send` at most 100 times a second for each shard.
kclxx::processor_factory at_most_100_a_second(function send);

/// Errors: kclxx::permanent_error for what is no gzip file, or over 64 MiB.
std::string gunzip(std::string_view data);
/// Calls `store` with the messages that CloudWatch Logs has put into the stream.
kclxx::processor_factory log_messages(function store);

}  // namespace recipes

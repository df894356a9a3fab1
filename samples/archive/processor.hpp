// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include <kclxx/archive/store.hpp>
#include <kclxx/kclxx.hpp>

/// An event is any JSON object that has a tenant, and the time at which it happened in
/// milliseconds since 1970: {"tenant": "acme", "at": 1764403200000, ...}
struct event {
  std::string folder;  ///< the folder of its file: tenant=acme/date=2025-11-29/hour=08
};
/// Reads an event. Errors: std::exception with the reason, which makes the record a bad one.
void from_json(const nlohmann::json& value, event& result);

/// A commit is made when it has so many records or bytes, or its first record has waited so long.
struct commit_limits {
  std::size_t records = 100'000;
  std::uint64_t bytes = 64 << 20;
  std::chrono::milliseconds time = std::chrono::minutes(1);
};

/// Makes the processor that archives a shard. It parks records that are no events in the store.
kclxx::processor_factory make_processor(std::shared_ptr<kclxx::archive::store> store,
                                        commit_limits limits = {});

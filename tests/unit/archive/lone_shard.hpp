// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <kclxx/shard_context.hpp>

namespace kclxx::test {

/// The names of a shard, without a session.
inline std::unique_ptr<shard_context> lone_shard(shard_context::fields names) {
  return detail::service_access::make<shard_context>(std::move(names), nullptr);
}

}  // namespace kclxx::test

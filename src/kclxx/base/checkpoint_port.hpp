// SPDX-License-Identifier: Apache-2.0
// What stands behind a checkpointer: the runtime under a daemon, the test kit in a user's test.
// It is the seam for waiting and time.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <system_error>

#include <kclxx/sequence_position.hpp>

namespace kclxx::detail {

/// Thread safety: all functions from any thread.
class checkpoint_port {
 public:
  struct result {
    std::error_code code;
    std::string name;  // the daemon's own name for the error
  };

  checkpoint_port() = default;
  checkpoint_port(const checkpoint_port&) = delete;
  checkpoint_port& operator=(const checkpoint_port&) = delete;
  virtual ~checkpoint_port() = default;

  /// std::nullopt is everything delivered. Blocks until persisted, failed or past the deadline.
  virtual result wait(const std::optional<sequence_position>& position,
                      const std::optional<std::chrono::steady_clock::time_point>& deadline) = 0;
  virtual std::error_code request(const std::optional<sequence_position>& position) = 0;
};

}  // namespace kclxx::detail

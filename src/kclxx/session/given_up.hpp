// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include <kclxx/sequence_position.hpp>

#include "session/checkpoints.hpp"
#include "session/output.hpp"

namespace kclxx::session {

/// A processor that gave its shard up leaves after this time, if records still arrive (P68).
inline constexpr std::chrono::minutes give_up_patience{5};

/// User code has reported by an exception that the lease is gone (P65). From then on what the
/// daemon sends is answered without a call, except for leaseLost.
class given_up {
 public:
  given_up(std::string reason, time_point now)
      : reason_(std::move(reason)), since_(now), last_report_(now) {}

  /// Its construction, or initialize, threw.
  void lose_processor() noexcept { has_processor_ = false; }
  [[nodiscard]] bool is_called_for(action_kind kind) const noexcept {
    return kind == action_kind::lease_lost && has_processor_;
  }
  /// Records up to there are not processed. False when they have arrived for so long that this
  /// worker has the lease, so that a new processor must take the shard over.
  [[nodiscard]] bool report_unprocessed(const sequence_position& largest, lease_state lease,
                                        time_point now, outputs& out);
  void report_unfinished_end(outputs& out) const;

 private:
  std::string reason_;
  bool has_processor_ = true;
  time_point since_;
  time_point last_report_;
};

}  // namespace kclxx::session

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include <kclxx/sequence_position.hpp>

#include "daemon_model/shard_consumer.hpp"
#include "simulation/run.hpp"
#include "simulation/world.hpp"

namespace kclxx::simulation {

class life;

/// The daemon of one child, a part of its life: the daemon model, what it has not read of the
/// child's output, and a random choice of what it calls. Knows the invariants about what the child
/// writes.
class daemon {
 public:
  daemon(world& world, random_source& random, bool with_faults, trace& log, life& owner);

  /// Neither a call is open nor has the worker stopped.
  [[nodiscard]] bool can_call() const { return can_stop() && !consumer_.is_waiting(); }
  void call_something();
  /// The child wrote something, or has gone unnoticed.
  [[nodiscard]] bool can_read() const;
  void read();
  /// The worker has not closed the child's input.
  [[nodiscard]] bool can_stop() const { return !is_gone_ && !consumer_.is_closed(); }
  void stop_worker();
  /// The JVM ends.
  void die(bool unfinished_line);
  [[nodiscard]] bool is_gone() const { return is_gone_; }

  void lose_lease() { lease_.lose(); }
  [[nodiscard]] bool is_lease_lost() const { return lease_.is_lost(); }

  /// A line that the child wrote. Nobody gets it if the JVM has ended.
  void receive(const std::string& line);
  [[nodiscard]] bool waits_for(protocol::action_kind what) const {
    return consumer_.is_waiting() && consumer_.waits_for() == what;
  }
  /// So many of the shard's first records were sent.
  [[nodiscard]] std::size_t sent() const { return sent_; }

 private:
  void call(protocol::action_kind what, const std::string& line, std::string_view action,
            const std::optional<sequence_position>& largest = std::nullopt);
  void call(protocol::action_kind what);
  void send_records();
  void take(const daemon_model::daemon_events& happened);
  void take(const daemon_model::answered& answer);

  world& world_;
  random_source& random_;
  bool with_faults_;
  trace& log_;
  life& life_;
  sequence_position start_;
  daemon_model::lease lease_;
  daemon_model::shard_consumer consumer_;
  std::size_t sent_;
  std::deque<std::string> unread_;
  bool has_seen_end_ = false;  // of the child's output
  bool is_gone_ = false;
};

}  // namespace kclxx::simulation

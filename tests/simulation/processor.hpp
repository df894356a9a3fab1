// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include <kclxx/record_batch.hpp>
#include <kclxx/sequence_position.hpp>

#include "session/action.hpp"
#include "simulation/random.hpp"
#include "simulation/world.hpp"

namespace kclxx::simulation {

/// A random user: a processor whose callbacks are made of small steps, and another thread that
/// takes steps in between, whether a callback runs or not. It keeps to the contract: a position is
/// given to the checkpointer only when all records up to it are done.
class processor {
 public:
  /// The checkpointer's functions, as the session has them.
  struct port {
    std::function<void(session::waiter_id, std::optional<sequence_position>, bool from_callback)>
        wait;
    std::function<bool(session::waiter_id)> deadline;  // false: it was completed before
    std::function<std::error_code(std::optional<sequence_position>, bool from_callback)> request;
    std::function<void()> returned;
    std::function<void()> threw;
  };

  processor(world& in, random_source& random, bool with_faults, port to);

  void begin(const session::call& call);
  void completed(const session::complete& result);
  void stop() { stop_requested_ = true; }

  /// Whether the running callback can take a step.
  [[nodiscard]] bool can_step() const;
  void step();
  [[nodiscard]] bool is_in_callback() const { return running_.has_value(); }
  [[nodiscard]] bool hangs() const { return hangs_; }
  /// The callback waits for a checkpoint.
  [[nodiscard]] bool is_waiting() const { return callback_wait_ != 0; }

  /// Whether the other thread has something to do besides waiting.
  [[nodiscard]] bool can_step_elsewhere() const;
  void step_elsewhere();
  [[nodiscard]] std::size_t open_waits() const {
    return elsewhere_.size() + (is_waiting() ? 1 : 0);
  }

  /// So many of the shard's first records are complete.
  [[nodiscard]] std::size_t done() const { return done_; }
  [[nodiscard]] bool may_finish() const { return may_finish_; }

 private:
  [[nodiscard]] bool by_request() const {
    return world_.options.complete == complete_when::by_request;
  }
  /// All delivered records have to be done before this callback may return.
  [[nodiscard]] bool must_finish_first() const;
  void finish_next();
  std::optional<sequence_position> some_done_position();
  void request_something(bool from_callback);
  void note_end(const std::optional<sequence_position>& position);
  void wait_in_callback();
  void end_callback(bool throws);

  world& world_;
  random_source& random_;
  bool with_faults_;
  port port_;
  std::size_t done_;
  std::size_t delivered_;
  std::optional<session::callback> running_;
  bool hangs_ = false;
  bool heeds_stop_ = true;  // otherwise a callback that hangs never returns
  bool will_throw_ = false;
  bool stop_requested_ = false;
  bool may_finish_ = false;
  session::waiter_id next_waiter_ = 1;
  session::waiter_id callback_wait_ = 0;
  std::map<session::waiter_id, bool> elsewhere_;  // waits of the other thread: with a deadline?
};

}  // namespace kclxx::simulation

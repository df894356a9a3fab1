// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <kclxx/processor_factory.hpp>
#include <kclxx/record_batch.hpp>
#include <kclxx/record_processor.hpp>
#include <kclxx/sequence_position.hpp>
#include <kclxx/shard_context.hpp>

#include "session/output.hpp"
#include "simulation/run.hpp"
#include "simulation/world.hpp"

namespace kclxx::simulation {

/// The checkpoints that user code asks for with a handler, and the invariants about the handlers.
class requests {
 public:
  /// Returns the request's number.
  std::size_t add(const std::optional<sequence_position>& target) {
    all_.push_back({target, false});
    return all_.size() - 1;
  }

  /// Its handler is called. Errors: violation.
  void answer(std::size_t number, std::error_code result, const sequence_position& persisted) {
    request_state& of = all_[number];
    if (of.is_answered) {
      throw violation("handler: that of request " + std::to_string(number) + " is called twice");
    }
    of.is_answered = true;
    check(of.target, result, persisted);
  }

  /// What a request, or a call that waits, results in. Errors: violation.
  static void check(const std::optional<sequence_position>& target, std::error_code result,
                    const sequence_position& persisted) {
    if (!result && target > persisted) {
      throw violation("handler: a checkpoint of " + to_string(*target) + " succeeds, and only " +
                      to_string(persisted) + " is persisted");
    }
  }

  /// Each handler was called. To be asked at the end of a process that was not killed.
  /// Errors: violation.
  void check_all_answered() const {
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].is_answered) {
        throw violation("handler: that of request " + std::to_string(i) + " is never called");
      }
    }
  }

 private:
  struct request_state {
    std::optional<sequence_position> target;  // std::nullopt: everything
    bool is_answered;
  };

  std::vector<request_state> all_;
};

class life;

/// A random user, a part of its life: a processor whose callbacks are made of small steps, timers,
/// checkpoint handlers, and another thread that takes steps in between, whether a callback runs or
/// not. It keeps to the contract: a position is given to the checkpointer only when all records up
/// to it are done.
class processor {
 public:
  processor(world& world, random_source& random, bool with_faults, life& owner);

  [[nodiscard]] processor_factory factory();

  /// From now on a store refuses what it does.
  void refuse() { is_refused_ = true; }

  /// Whether the running callback can take a step.
  [[nodiscard]] bool can_step() const;
  void step();
  /// Whether what happens now is in a callback; not in a timer, or on another thread.
  [[nodiscard]] bool is_in_callback() const { return running_.has_value(); }
  [[nodiscard]] bool hangs() const { return hangs_; }
  /// It has ended a callback or a timer since the lease is gone.
  [[nodiscard]] bool has_given_up() const { return has_given_up_; }

  /// Whether the other thread has something to do besides waiting.
  [[nodiscard]] bool can_step_elsewhere() const;
  void step_elsewhere();
  /// A waiting call of the other thread was completed.
  void woken(session::waiter_id id, std::error_code result);

  [[nodiscard]] std::size_t open_waits() const { return waits_elsewhere() + (waits_ ? 1 : 0); }
  [[nodiscard]] std::size_t waits_elsewhere() const { return elsewhere_.size(); }
  [[nodiscard]] const requests& handlers() const { return requests_; }

  /// So many of the shard's first records may be checkpointed.
  [[nodiscard]] std::size_t complete() const { return is_manual() ? asked_ : done_; }
  [[nodiscard]] bool may_finish() const { return may_finish_; }
  [[nodiscard]] bool has_requested_all() const { return asked_ == delivered_; }

 private:
  class callbacks;
  enum class ending { returns, throws, lease_gone };
  struct wait {
    std::optional<sequence_position> target;
    bool has_deadline;
  };
  using optional_position = std::optional<sequence_position>;

  void run(protocol::action_kind what, const record_batch& batch);
  void run_timer(std::size_t number, bool is_periodic);
  void handler_called(std::size_t number, std::error_code result);

  [[nodiscard]] bool is_manual() const { return world_.mode == checkpoint_mode::manual; }
  /// All delivered records have to be done before this callback may return.
  [[nodiscard]] bool must_finish_first() const;
  [[nodiscard]] optional_position before(std::size_t index) const;
  /// What a checkpoint without a position means here, and whether it may be asked for.
  [[nodiscard]] std::size_t everything() const { return running_ ? delivered_ : returned_; }
  [[nodiscard]] bool may_ask_for_everything() const { return done_ >= everything(); }
  void take_step();
  /// Completes a record, or some in one transaction. Errors: fenced_error.
  void finish_next();
  void commit_some();
  void report_fenced();
  optional_position some_done_position();
  void ask(const optional_position& position);
  void async_checkpoint(const optional_position& position);
  void checkpoint_something();
  void note_end(const optional_position& target, bool has_position);
  void wait_in_callback();
  void use_timers();
  void end_callback(ending kind);

  world& world_;
  random_source& random_;
  bool with_faults_;
  life& life_;
  const shard_context* context_ = nullptr;
  std::optional<store::transaction> transaction_;
  std::size_t done_;
  std::size_t asked_;
  std::size_t delivered_;
  std::size_t returned_;
  std::optional<protocol::action_kind> running_;
  std::optional<ending> ending_;
  bool is_in_timer_ = false;
  bool has_given_up_ = false;
  bool is_refused_ = false;    // by a store with a fence
  bool has_reported_ = false;  // that the other thread was fenced
  bool hangs_ = false;
  bool heeds_stop_ = true;  // otherwise a callback that hangs never returns
  bool may_finish_ = false;
  bool waits_ = false;  // in a callback
  std::map<session::waiter_id, wait> elsewhere_;
  requests requests_;
  std::map<std::size_t, shard_context::timer_id> timers_;
  std::size_t timers_started_ = 0;
};

}  // namespace kclxx::simulation

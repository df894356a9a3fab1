// SPDX-License-Identifier: Apache-2.0
// Checkpoints before the shard's end. A child that never asks for a checkpoint breaks no rule here.
#include <utility>

#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

using protocol::action_kind;

void none_during(const lockstep_daemon& daemon, action_kind kind) {
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    if (checkpoint.during == kind) throw breach(to_string(checkpoint));
  }
}

void in_initialize(rule_context& context) {
  for (const char* position : {"TRIM_HORIZON", "300"}) {
    lockstep_daemon& daemon = context.start(sequence_position(position));
    const auto reaction = daemon.attempt(daemon.initialize());
    none_during(daemon, action_kind::initialize);
    if (!reaction.is_answered) throw not_applicable(reaction.seen);
  }
}

void in_lease_lost(rule_context& context) {
  // When checkpoints are throttled, the child has a position that is still to be persisted.
  for (const bool is_throttled : {false, true}) {
    for (const auto& ending : {lease_lost(), old_shutdown("ZOMBIE"), old_shutdown("LEASE_LOST")}) {
      lockstep_daemon& daemon = context.start_initialized();
      if (is_throttled) daemon.fail_writes("ThrottlingException");
      daemon.prepare(context.records(101, 3));
      daemon.attempt(ending);  // whether it is answered is another rule's matter
      none_during(daemon, action_kind::lease_lost);
    }
  }
}

constexpr const char* last_delivered = "204";

struct delivered {
  lockstep_daemon& daemon;
  bool is_through;  ///< the end was answered
};

/// Plays these actions, and then records with sub-sequence numbers that rise and fall, up to 204/0.
/// A child that takes a greater sub-sequence number for a later position stops at 201/4.
delivered deliver(rule_context& context, lockstep_daemon& daemon, std::vector<action> actions) {
  actions.push_back(context.aggregated_records("201", 5));
  actions.push_back(context.records(202, 1));
  actions.push_back(context.aggregated_records("203", 3));
  actions.push_back(context.records(204, 1));
  actions.push_back(shutdown_requested());
  const bool is_through = daemon.attempt_all(actions);
  if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
  return {daemon, is_through};
}

/// Delivers numbers of one to three digits: compared as text, 9 is more than 10 and 100.
delivered many_positions(rule_context& context) {
  return deliver(context, context.start_initialized(sequence_position("6")),
                 {context.records(7, 2), context.records(9, 2), context.records(11, 1),
                  context.records(98, 2), context.records(100, 3)});
}

void not_beyond(rule_context& context) {
  const lockstep_daemon& daemon = many_positions(context).daemon;
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    const auto position = position_of(checkpoint);
    if (!position) throw breach(to_string(checkpoint) + ", which is no position");
    if (*position > checkpoint.largest) {
      throw breach(to_string(checkpoint) + ", when " + to_string(checkpoint.largest) +
                   " was the largest delivered");
    }
  }
}

void rises(rule_context& context) {
  const auto [daemon, is_through] = many_positions(context);
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    const auto position = position_of(checkpoint);
    if (position && *position < checkpoint.last) {
      throw breach(to_string(checkpoint) + ", when " + to_string(checkpoint.last) +
                   " was persisted");
    }
  }
  if (is_through) expect_persisted(daemon, sequence_position(last_delivered));
}

void sub_sequence(rule_context& context) {
  const auto [daemon, is_through] = deliver(context, context.start_initialized(), {});
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    const auto& number = checkpoint.asked.sequence_number;
    if ((number == "201" || number == "203") && !checkpoint.asked.sub_sequence_number) {
      throw breach(to_string(checkpoint) + "; " + *number + " has several user records");
    }
  }
  if (is_through) expect_persisted(daemon, sequence_position(last_delivered));
}

/// Errors: not_applicable, when no checkpoint met the fault.
const checkpoint_seen& expect_failed(const lockstep_daemon& daemon, std::string_view error) {
  if (const checkpoint_seen* const failed = daemon.failed_with(error)) return *failed;
  throw not_applicable(daemon.checkpoints.empty()
                           ? "it asked for no checkpoint"
                           : "none of its checkpoints failed with " + std::string(error));
}

void comes_again_after(rule_context& context, const std::string& error) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.fail_writes(error, 1);
  daemon.call_all({context.records(101, 3), context.records(104, 3)});
  const checkpoint_seen* const early = daemon.failed_with(error);
  if (early == nullptr || daemon.row.checkpoint() < position_of(*early)) {
    daemon.call_all({shutdown_requested()});
  }
  const checkpoint_seen& failed = expect_failed(daemon, error);
  if (daemon.row.checkpoint() < position_of(failed)) {
    throw breach(to_string(failed) + " failed with " + error + " and did not come again; " +
                 to_string(daemon.row.checkpoint()) + " is persisted");
  }
  // The position of the last batch: no later checkpoint would cover it.
  lockstep_daemon& last = context.start_initialized();
  last.fail_writes(error, 1);
  last.call_all({context.records(101, 3), shutdown_requested()});
  const checkpoint_seen* const dropped = last.failed_with(error);
  if (dropped != nullptr && last.row.checkpoint() < position_of(*dropped)) {
    throw breach(to_string(*dropped) + " failed with " + error +
                 ", no batch came after it, and it did not come again in shutdownRequested; " +
                 to_string(last.row.checkpoint()) + " is persisted");
  }
}

/// A child whose checkpoint in processRecords has failed for good, and that has answered the batch.
lockstep_daemon& after_final_error(rule_context& context, const std::string& error) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.fail_writes(error, 1);
  for (const auto& batch : {context.records(101, 3), context.records(104, 3)}) {
    const auto reaction = daemon.attempt(batch);
    if (!reaction.is_answered) throw not_applicable(reaction.seen);
  }
  expect_failed(daemon, error);
  return daemon;
}

void goes_on_after_final_error(rule_context& context) {
  for (const char* error : {"InvalidStateException", "TomorrowsException"}) {
    lockstep_daemon& daemon = after_final_error(context, error);
    daemon.call_all({context.records(107, 3), shutdown_requested()});
    expect_persisted(daemon, sequence_position("109"));
    lockstep_daemon& at_end = after_final_error(context, error);
    at_end.call_all({shard_ended()});
    if (at_end.row.checkpoint() == sequence_position("SHARD_END")) continue;
    throw breach("a checkpoint in processRecords failed with " + std::string(error) +
                 ", and shardEnded was answered; " + to_string(at_end.row.checkpoint()) +
                 " is persisted");
  }
}

void unknown_error(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.fail_writes("TomorrowsException");
  auto reaction = daemon.attempt(context.records(101, 3));
  if (reaction.is_answered) reaction = daemon.attempt(shutdown_requested());
  if (!reaction.is_answered && !reaction.is_gone) throw breach(reaction.seen);
  expect_failed(daemon, "TomorrowsException");
}

void none_after_lease_is_gone(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.row.lose();
  // A child may ask for several checkpoints in an action before it reads the first answer.
  std::size_t in_time = 0;
  bool is_through = true;
  bool has_failed = false;
  for (const action& next :
       {context.records(101, 3), context.records(104, 3), shutdown_requested()}) {
    is_through = is_through && daemon.attempt(next).is_answered;
    if (!has_failed) in_time = daemon.checkpoints.size();
    has_failed = daemon.failed_with("ShutdownException") != nullptr;
  }
  expect_failed(daemon, "ShutdownException");
  if (daemon.checkpoints.size() > in_time) {
    throw breach("in an action after a ShutdownException came " +
                 to_string(daemon.checkpoints[in_time]));
  }
  if (!is_through) throw not_applicable("it leaves on a ShutdownException; see lease-is-gone");
}

struct shutdown {
  lockstep_daemon& daemon;
  check::reaction reaction;
};

/// Plays two batches, then shutdownRequested, in which `count` writes fail, or every one.
shutdown shut_down_with_failures(rule_context& context, const std::string& error,
                                 std::optional<int> count = std::nullopt) {
  // A child that has persisted everything has nothing to ask for. So in a second try the writes in
  // the batches fail, too.
  for (const int failures_in_batches : {0, 2}) {
    lockstep_daemon& daemon = context.start_initialized();
    daemon.fail_writes("ThrottlingException", failures_in_batches);
    if (!daemon.attempt_all({context.records(101, 3), context.records(104, 3)})) continue;
    daemon.fail_writes(error, count);
    daemon.checkpoints.clear();
    auto reaction = daemon.attempt(shutdown_requested());
    if (daemon.failed_with(error) != nullptr) return {daemon, std::move(reaction)};
  }
  throw not_applicable("it asked for no checkpoint in shutdownRequested");
}

void throttled_at_shutdown(rule_context& context) {
  for (const char* error : {"ThrottlingException", "KinesisClientLibDependencyException"}) {
    const auto [daemon, reaction] = shut_down_with_failures(context, error, 1);
    if (!reaction.is_answered) throw breach(reaction.seen);
    if (daemon.row.checkpoint() == sequence_position("106")) continue;
    throw breach("106/0 was delivered; its checkpoint in shutdownRequested failed with " +
                 std::string(error) + ", and " + to_string(daemon.row.checkpoint()) +
                 " is persisted when that is answered");
  }
}

void in_an_aggregate(rule_context& context) {
  // Whether the child persists the aggregated record when it starts before it.
  lockstep_daemon& reference = context.start_initialized(sequence_position("200"));
  reference.attempt_all({context.aggregated_records("201", 5), shutdown_requested()});
  const bool persists_all = reference.row.checkpoint() == sequence_position("201", 4);
  lockstep_daemon& daemon = context.start_initialized(sequence_position("201", 1));
  daemon.call(context.aggregated_records("201", 3, 2));
  const bool is_through = daemon.attempt_all({shutdown_requested()});
  if (daemon.checkpoints.empty() && !persists_all)
    throw not_applicable("it asked for no checkpoint");
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    if (checkpoint.error) {
      throw breach(to_string(checkpoint) + " failed with " + *checkpoint.error +
                   "; 201/1 was persisted, 201/2 to 201/4 were delivered");
    }
  }
  if (is_through) expect_persisted(daemon, sequence_position("201", 4));
}

void after_a_named_start(rule_context& context) {
  // TRIM_HORIZON is the reference: whether everything is persisted after it has a rule of its own.
  for (const char* position : {"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP"}) {
    lockstep_daemon& daemon = context.start_initialized(sequence_position(position));
    const bool is_through = daemon.attempt_all(
        {context.records(101, 3), context.records(104, 3), shutdown_requested()});
    if (is_through && daemon.row.checkpoint() == sequence_position("106")) continue;
    if (sequence_position(position) == sequence_position("TRIM_HORIZON")) {
      throw not_applicable("it does not persist all after TRIM_HORIZON, either");
    }
    throw breach("after a start at " + std::string(position) + " 106/0 was delivered; " +
                 to_string(daemon.row.checkpoint()) + " is persisted");
  }
}

constexpr rule checkpoint_rule_list[] = {
    {"checkpoint-in-initialize", "no checkpoint is asked for in initialize", "P38",
     "The daemon has no checkpointer there and answers InvalidStateException.", in_initialize},
    {"checkpoint-in-lease-lost", "no checkpoint is asked for when the lease is lost", "P38",
     "Another worker owns the shard and its position. The daemon answers InvalidStateException.",
     in_lease_lost},
    {"checkpoint-not-beyond", "no checkpoint lies beyond what was delivered", "P36",
     "The daemon answers IllegalArgumentException, and nothing is persisted.", not_beyond},
    {"checkpoint-rises", "no checkpoint lies before one that succeeded", "P35, P36",
     "The daemon answers IllegalArgumentException. Positions are compared as numbers: a child that "
     "compares text takes 9 as greater than 10.",
     rises},
    {"checkpoint-sub-sequence",
     "a position in an aggregated record is checkpointed with its sub-sequence number", "P17, P21",
     "Without it the daemon takes sub-sequence number 0: a restart delivers the aggregate's "
     "other records again. A child that takes a greater sub-sequence number for a later position "
     "never checkpoints after 201/4.",
     sub_sequence},
    {"throttled-checkpoint",
     "a position whose checkpoint was throttled is persisted later, without an end of the child",
     "P41, P45",
     "Throttling of the lease table is common. A position that is dropped costs duplicates after a "
     "restart; a child that exits ends the whole worker.",
     [](rule_context& context) { comes_again_after(context, "ThrottlingException"); }},
    {"dependency-checkpoint",
     "a position is persisted later when its checkpoint failed with "
     "KinesisClientLibDependencyException",
     "P41, P45",
     "It means that DynamoDB did not answer. A position that is dropped costs duplicates after a "
     "restart; a child that exits ends the whole worker.",
     [](rule_context& context) {
       comes_again_after(context, "KinesisClientLibDependencyException");
     }},
    {"final-checkpoint-error",
     "after a checkpoint in processRecords that failed for good, later positions and the shard's "
     "end are persisted",
     "P43, P44",
     "A failed checkpoint changes nothing in the daemon. A child that asks for none any more "
     "reports the end of the shard without persisting it: the child shards are never read.",
     goes_on_after_final_error},
    {"unknown-checkpoint-error",
     "a checkpoint that fails with an error of an unknown name does not hang the child", "P12, P43",
     "The error is the name of an exception, one of an open set. The daemon waits for the status "
     "without a time limit.",
     unknown_error},
    {"lease-is-gone", "after a ShutdownException actions are still answered", "P42",
     "It means that another worker has the lease, through no fault of the child. The daemon finds "
     "out and calls leaseLost; a child that exits ends the whole worker.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_initialized();
       daemon.row.lose();
       daemon.call_all({context.records(101, 3), context.records(104, 3), lease_lost()});
       expect_failed(daemon, "ShutdownException");
     }},
    {"no-checkpoint-after-lease-is-gone",
     "after a ShutdownException no other checkpoint is asked for", "P42",
     "None can succeed. Each costs a round trip, and a loop of retries delays the hand-off; the "
     "records already belong to another worker.",
     none_after_lease_is_gone},
    {"checkpoint-at-shutdown",
     "everything delivered is persisted when shutdownRequested is answered", "P46",
     "The lease is handed over next, or the worker ends: what is not persisted is processed "
     "again elsewhere.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_with_batch();
       daemon.prepare(context.records(104, 3));
       daemon.prepare(shutdown_requested());
       if (daemon.checkpoints.empty()) throw not_applicable("it asked for no checkpoint");
       expect_persisted(daemon, sequence_position("106"));
     }},
    {"throttled-at-shutdown",
     "a checkpoint that fails in shutdownRequested with ThrottlingException, or with "
     "KinesisClientLibDependencyException, is retried before the status",
     "P41, P46",
     "There is no later opportunity: what is not persisted is processed again elsewhere.",
     throttled_at_shutdown},
    {"checkpoint-in-aggregate",
     "after a start inside an aggregated record the rest of it is persisted", "P17, P36",
     "The first records that come have the sequence number of the position. A checkpoint without "
     "the sub-sequence number lies before it, and the daemon refuses it. A child that takes them "
     "for records that it knows loses them.",
     in_an_aggregate},
    {"checkpoint-after-named-start",
     "what comes after a start at LATEST or AT_TIMESTAMP is persisted, as after TRIM_HORIZON",
     "P16, P35",
     "A name lies before each number. A child that compares the two as text takes LATEST for the "
     "greater one and never checkpoints: after the next restart it begins at LATEST again, and "
     "what came in between is lost.",
     after_a_named_start},
    {"failed-at-shutdown",
     "shutdownRequested is answered when its checkpoint fails with ShutdownException or "
     "InvalidStateException",
     "P42, P43, P46",
     "Trying again is of no use, and costs no more than duplicates. A child that exits ends the "
     "worker when leaseLost comes; one that hangs uses up the time that all shards have for their "
     "shutdown.",
     [](rule_context& context) {
       for (const char* error : {"ShutdownException", "InvalidStateException"}) {
         const auto [daemon, reaction] = shut_down_with_failures(context, error);
         if (reaction.is_answered) continue;
         throw breach(reaction.seen + "; a checkpoint failed with " + error);
       }
     }},
    {"shutdown-gives-up",
     "shutdownRequested is answered in time when each of its checkpoints is throttled", "P46",
     "The daemon waits for shutdownGraceMillis, and for 30 s when it hands the lease over. A child "
     "that still retries then is cut off by the end of its input, and the hand-off was delayed for "
     "nothing. A checkpoint that fails here costs only duplicates.",
     [](rule_context& context) {
       const auto [daemon, reaction] = shut_down_with_failures(context, "ThrottlingException");
       if (reaction.is_answered) return;
       throw breach(reaction.seen + "; checkpoints that were throttled in it: " +
                    std::to_string(daemon.checkpoints.size()));
     }},
};

}  // namespace

std::span<const rule> checkpoint_rules() { return checkpoint_rule_list; }

}  // namespace kclxx::check

// SPDX-License-Identifier: Apache-2.0
// Every action is answered, whatever its size.
#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

void answers(rule_context& context, const action& action) {
  lockstep_daemon& daemon = context.start_with_batch();
  daemon.call(action);
}

void many_batches(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  constexpr std::uint64_t count = 1100;  // more than a process may have open descriptors
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto reaction = daemon.attempt(context.records(101 + i, 1));
    if (!reaction.is_answered) {
      throw breach(reaction.seen + "; " + std::to_string(i) + " batches were answered before");
    }
  }
}

/// The end of the rules on batches that come again: `last` is persisted, if the child checkpoints.
void shut_down_at(lockstep_daemon& daemon, const sequence_position& last) {
  daemon.prepare(shutdown_requested());
  if (!daemon.checkpoints.empty()) expect_persisted(daemon, last);
  for (const checkpoint_seen& checkpoint : daemon.checkpoints) {
    if (checkpoint.error == "IllegalArgumentException") {
      throw hint(to_string(checkpoint) + " was refused: " + to_string(checkpoint.last) +
                 " was persisted, " + to_string(checkpoint.largest) + " the largest delivered");
    }
  }
}

/// A child that has answered the records 101 to 106, and cannot persist a position after 103.
lockstep_daemon& with_records_in_flight(rule_context& context) {
  lockstep_daemon& daemon = context.start_initialized();
  daemon.row.set_fault([](const sequence_position& position) -> std::optional<std::string> {
    if (position <= sequence_position("103")) return std::nullopt;
    return "ThrottlingException";
  });
  daemon.prepare(context.records(101, 3));
  daemon.prepare(context.records(104, 3));
  return daemon;
}

/// Initializes a child at the position that the former one has persisted, and delivers the records
/// up to 106 that follow it.
void resume_to_106(const rule_context& context, lockstep_daemon& daemon) {
  const sequence_position position = daemon.row.checkpoint();
  std::uint64_t next = 101;
  while (sequence_position(std::to_string(next)) <= position) ++next;  // 103 at most is persisted
  daemon.call(daemon.initialize());
  daemon.call(context.records(next, 107 - next));
}

void resent_after_restart(rule_context& context) {
  with_records_in_flight(context).leave();
  lockstep_daemon& daemon = context.start_again(rule_context::former_child::ends_first);
  resume_to_106(context, daemon);
  daemon.call(context.records(107, 3));
  shut_down_at(daemon, sequence_position("109"));
}

void hand_over(rule_context& context) {
  lockstep_daemon& former = with_records_in_flight(context);
  former.row.lose();
  lockstep_daemon& next = context.start_again(rule_context::former_child::stays);
  resume_to_106(context, next);
  former.call(context.records(107, 3));
  next.call(context.records(107, 3));
  former.call(lease_lost());
  const auto end = former.leave();
  if (!end) throw breach(to_string(end, former.limit()));
  shut_down_at(next, sequence_position("109"));
}

constexpr std::string_view hangs =
    "The daemon waits for the status without a time limit, unless timeoutInSeconds is set: the "
    "shard hangs. When the child exits instead, the whole worker ends, with all its shards.";

constexpr rule action_rule_list[] = {
    {"initialize", "initialize is answered", "P24", hangs,
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start();
       daemon.call(daemon.initialize());
     }},
    {"initial-positions",
     "initialize is answered at TRIM_HORIZON, LATEST, AT_TIMESTAMP, SHARD_END and a number", "P16",
     hangs,
     [](rule_context& context) {
       for (const char* position : {"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP", "SHARD_END"}) {
         lockstep_daemon& daemon = context.start(sequence_position(position));
         daemon.call(daemon.initialize());
       }
       lockstep_daemon& daemon = context.start(
           sequence_position("49590338271490256608559692538361571095921575989136588898", 3));
       daemon.call(daemon.initialize());
     }},
    {"one-record", "a batch of one record is answered", "P24", hangs,
     [](rule_context& context) { context.start_initialized().call(context.records(101, 1)); }},
    {"empty-batch", "a batch without records is answered", "P18",
     "With callProcessRecordsEvenForEmptyRecordList=true the daemon sends empty batches: the only "
     "calls of an idle shard's child.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_initialized();
       daemon.call(context.records(101, 0));
       daemon.call(context.records(101, 1));
       daemon.call(context.records(102, 0));
     }},
    {"many-records", "a batch of 10,000 records is answered", "P6",
     "10,000 records are what one GetRecords call can bring.",
     [](rule_context& context) { context.start_initialized().call(context.records(101, 10000)); }},
    {"long-line", "a line of 28 MB is answered", "P6",
     "One line holds a whole batch: up to 14 MB as read from Kinesis, and far more after the "
     "daemon has split aggregated records.",
     [](rule_context& context) {
       // Kinesis' default limit for one record; 20 of them are a line of 28 MB.
       const std::string payload = context.payload_of_size(std::size_t{1} << 20);
       context.start_initialized().call(records_of(std::vector<std::string>(20, payload), 101));
     }},
    {"large-record", "a record of 10 MiB is answered", "P6",
     "A stream can be set to allow records of 10 MiB (UpdateMaxRecordSize). That is one string of "
     "14 MB of base64. A child that fails on it meets the same record again after the restart: a "
     "crash loop of the whole worker.",
     [](rule_context& context) {
       context.start_initialized().call(
           records_of({context.payload_of_size(std::size_t{10} << 20)}, 101));
     }},
    {"aggregated-records", "the user records of an aggregated record are answered", "P17",
     "The daemon splits aggregated (KPL) records: one sequence number, several sub-sequence "
     "numbers.",
     [](rule_context& context) {
       context.start_initialized().call(context.aggregated_records("201", 5));
     }},
    {"shutdown-requested", "shutdownRequested is answered", "P24, P33",
     "3.x sends it at every hand-off of a lease and before it stops. Without an answer the "
     "hand-off waits for its whole grace time.",
     [](rule_context& context) { answers(context, shutdown_requested()); }},
    {"lease-lost", "leaseLost is answered", "P24", hangs,
     [](rule_context& context) { answers(context, lease_lost()); }},
    {"shard-ended", "shardEnded is answered", "P24", hangs,
     [](rule_context& context) { answers(context, shard_ended()); }},
    {"hand-off", "leaseLost after shutdownRequested is answered", "P27",
     "That is how 3.x hands a lease over. A child that exited after shutdownRequested ends the "
     "worker here.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_with_batch();
       daemon.prepare(shutdown_requested());
       daemon.call(lease_lost());
     }},
    {"lease-lost-first", "leaseLost right after initialize is answered", "P28",
     "A worker that starts beside others may lose a shard before its first batch. What a processor "
     "opens at its first record does not exist then. A child that fails on it ends the worker.",
     [](rule_context& context) { context.start_initialized().call(lease_lost()); }},
    {"shutdown-requested-first", "shutdownRequested right after initialize is answered", "P28, P33",
     "During a deployment 3.x hands leases over that have just been taken. There is no last record "
     "to be checkpointed then. A child that fails on it ends the worker in the middle of the "
     "hand-over.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_initialized();
       daemon.call(shutdown_requested());
       daemon.call(lease_lost());
     }},
    {"many-batches", "1,100 small batches are answered, one after the other", "P28",
     "A shard with a steady trickle of records has a batch each second, for weeks. What each batch "
     "leaves open, a descriptor or a thread, ends the child after hours.",
     many_batches},
    {"batch-twice", "a batch that comes twice is answered, and its last record is persisted",
     "P36, P69",
     "A checkpoint of its first record lies before one that succeeded: the daemon refuses it. A "
     "child that exits on that, or on records that it knows, is in a crash loop.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_with_batch();
       daemon.call(context.records(101, 3));
       daemon.call(context.records(104, 3));
       daemon.call(context.records(104, 3));
       shut_down_at(daemon, sequence_position("106"));
     }},
    {"resent-after-restart",
     "a child that starts again for a shard answers the records that come again", "P31, P69",
     "What was not persisted is delivered again after each restart. What the former child has "
     "left, a lock or a state of its own, must not keep the next one from its work.",
     resent_after_restart},
    {"hand-over",
     "a child of the same shard can start while the one that has lost the lease still has records",
     "P42, P69",
     "A worker whose lease was taken learns of it late: two children of a shard run side by side, "
     "on one machine too, and the new one gets what the old one has not persisted. One that exits, "
     "for a lock or a port that the other holds, ends its worker.",
     hand_over},
    {"old-shutdown",
     "shutdown with TERMINATE, SHARD_END, ZOMBIE or LEASE_LOST is answered, as shutdown", "P11",
     "Daemons of 1.x end a shard with TERMINATE and report a lost lease with ZOMBIE, those of 2.0 "
     "with SHARD_END and LEASE_LOST. Without a status for shutdown the worker ends or hangs.",
     [](rule_context& context) {
       for (const char* reason : {"TERMINATE", "SHARD_END", "ZOMBIE", "LEASE_LOST"}) {
         lockstep_daemon& daemon = context.start_with_batch();
         daemon.call(old_shutdown(reason), reason);
       }
     }},
    {"unknown-action", "an action of an unknown name does not hang the child", "P29, P30",
     "A later daemon may add an action, as 2.x did with leaseLost and shardEnded. With neither "
     "a status nor an end of the output the shard hangs without a message.",
     [](rule_context& context) {
       const auto reaction = context.start_initialized().attempt(unknown_action());
       if (!reaction.is_answered && !reaction.is_gone) throw breach(reaction.seen);
     }},
    {"unknown-action-goes-on", "an action of an unknown name is answered, and the next one too",
     "P29",
     "A later daemon may add an action. A child that exits takes the whole worker with it, on "
     "every machine, at every restart.",
     [](rule_context& context) {
       lockstep_daemon& daemon = context.start_initialized();
       daemon.call(unknown_action());
       daemon.call(context.records(101, 3));
     }},
};

}  // namespace

std::span<const rule> action_rules() { return action_rule_list; }

}  // namespace kclxx::check

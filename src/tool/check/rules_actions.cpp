// SPDX-License-Identifier: Apache-2.0
// Every action is answered, whatever its size.
#include "tool/check/rule.hpp"

namespace kclxx::check {

namespace {

void initialize(rule_context& on) {
  daemon& with = on.start();
  with.call(with.initialize_at("TRIM_HORIZON"));
}

void initial_positions(rule_context& on) {
  for (const char* where : {"TRIM_HORIZON", "LATEST", "AT_TIMESTAMP", "SHARD_END"}) {
    daemon& with = on.start();
    with.call(with.initialize_at(where));
  }
  daemon& with = on.start();
  with.call(with.initialize_at("49590338271490256608559692538361571095921575989136588898", 3));
}

void one_record(rule_context& on) { on.start_initialized().call(records(101, 1)); }

void empty_batch(rule_context& on) {
  daemon& with = on.start_initialized();
  with.call(records(101, 0));
  with.call(records(101, 1));
  with.call(records(102, 0));
}

void many_records(rule_context& on) { on.start_initialized().call(records(101, 10000)); }

void long_line(rule_context& on) {
  // Kinesis' default limit for one record; 20 of them are a line of 28 MB.
  const std::string payload(std::size_t{1} << 20, 'x');
  on.start_initialized().call(records_of(std::vector<std::string>(20, payload), 101));
}

void large_record(rule_context& on) {
  const std::string payload(std::size_t{10} << 20, 'x');
  on.start_initialized().call(records_of({payload}, 101));
}

void aggregated(rule_context& on) { on.start_initialized().call(aggregated_records("201", 5)); }

void answers(rule_context& on, const action& what) {
  daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.call(what);
}

void asked_to_shut_down(rule_context& on) { answers(on, shutdown_requested()); }
void lost_lease(rule_context& on) { answers(on, lease_lost()); }
void ended_shard(rule_context& on) { answers(on, shard_ended()); }
void old_terminate(rule_context& on) { answers(on, old_shutdown("TERMINATE")); }
void old_shard_end(rule_context& on) { answers(on, old_shutdown("SHARD_END")); }
void old_zombie(rule_context& on) { answers(on, old_shutdown("ZOMBIE")); }
void old_lease_lost(rule_context& on) { answers(on, old_shutdown("LEASE_LOST")); }

void hand_off(rule_context& on) {
  daemon& with = on.start_initialized();
  with.prepare(records(101, 3));
  with.prepare(shutdown_requested());
  with.call(lease_lost());
}

void unknown(rule_context& on) {
  const reaction came = on.start_initialized().attempt(unknown_action());
  if (!came.is_answered && !came.is_gone) throw violation(came.seen);
}

void unknown_goes_on(rule_context& on) {
  daemon& with = on.start_initialized();
  with.call(unknown_action());
  with.call(records(101, 3));
}

constexpr std::string_view hangs =
    "The daemon waits for the status without a time limit, unless timeoutInSeconds is set: the "
    "shard hangs. When the child exits instead, the whole worker ends, with all its shards.";
constexpr std::string_view old_end =
    "Daemons of 1.x end a shard with shutdown and TERMINATE, those of 2.0 with SHARD_END. Without "
    "a status for shutdown the worker ends or hangs.";
constexpr std::string_view old_loss =
    "Daemons of 1.x report a lost lease with shutdown and ZOMBIE, those of 2.0 with LEASE_LOST. "
    "Without a status for shutdown the worker ends or hangs.";

constexpr rule rules[] = {
    {"initialize", "initialize is answered", "P24", hangs, initialize},
    {"initial-positions",
     "initialize is answered at TRIM_HORIZON, LATEST, AT_TIMESTAMP, SHARD_END and a number", "P16",
     hangs, initial_positions},
    {"one-record", "a batch of one record is answered", "P24", hangs, one_record},
    {"empty-batch", "a batch without records is answered", "P18",
     "With callProcessRecordsEvenForEmptyRecordList=true the daemon sends empty batches: the only "
     "calls of an idle shard's child.",
     empty_batch},
    {"many-records", "a batch of 10,000 records is answered", "P6",
     "10,000 records are what one GetRecords call can bring.", many_records},
    {"long-line", "a line of 28 MB is answered", "P6",
     "One line holds a whole batch: up to 14 MB as read from Kinesis, and far more after the "
     "daemon has split aggregated records.",
     long_line},
    {"large-record", "a record of 10 MiB is answered", "P6",
     "A stream can be set to allow records of 10 MiB (UpdateMaxRecordSize). That is one string of "
     "14 MB of base64. A child that fails on it meets the same record again after the restart: a "
     "crash loop of the whole worker.",
     large_record},
    {"aggregated-records", "the user records of an aggregated record are answered", "P17",
     "The daemon splits aggregated (KPL) records: one sequence number, several sub-sequence "
     "numbers.",
     aggregated},
    {"shutdown-requested", "shutdownRequested is answered", "P24, P33",
     "3.x sends it at every hand-off of a lease and before it stops. Without an answer the "
     "hand-off waits for its whole grace time.",
     asked_to_shut_down},
    {"lease-lost", "leaseLost is answered", "P24", hangs, lost_lease},
    {"shard-ended", "shardEnded is answered", "P24", hangs, ended_shard},
    {"hand-off", "leaseLost after shutdownRequested is answered", "P27",
     "That is how 3.x hands a lease over. A child that exited after shutdownRequested ends the "
     "worker here.",
     hand_off},
    {"old-terminate", "shutdown with TERMINATE is answered, as shutdown", "P11", old_end,
     old_terminate},
    {"old-shard-end", "shutdown with SHARD_END is answered, as shutdown", "P11", old_end,
     old_shard_end},
    {"old-zombie", "shutdown with ZOMBIE is answered, as shutdown", "P11", old_loss, old_zombie},
    {"old-lease-lost", "shutdown with LEASE_LOST is answered, as shutdown", "P11", old_loss,
     old_lease_lost},
    {"unknown-action", "an action of an unknown name does not hang the child", "P29, P30",
     "A later daemon may add an action, as 2.x did with leaseLost and shardEnded. With neither "
     "a status nor an end of the output the shard hangs without a message.",
     unknown},
    {"unknown-action-goes-on", "an action of an unknown name is answered, and the next one too",
     "P29",
     "A later daemon may add an action. A child that exits takes the whole worker with it, on "
     "every host, at every restart.",
     unknown_goes_on},
};

}  // namespace

std::span<const rule> action_rules() { return rules; }

}  // namespace kclxx::check
